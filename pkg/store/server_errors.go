package store

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"arizuko/pkg/store/pg"

	"github.com/jackc/pgx/v5/pgconn"
)

// Errors of a Postgres server that an operator can do something about.
var (
	errServerFull error = &serverError{ErrFull,
		"the disk of the database server is full: free some space there, writes are retried"}
	errServerReadOnly error = &serverError{ErrReadOnly,
		"the database server takes no writes: it is a standby, or its operator has stopped them; " +
			"name all servers in ARIZUKO_DB and add target_session_attrs=read-write"}
	errStalled error = &serverError{ErrUnreachable,
		"the database server has ended the connection: this process did not go on with a transaction in time; " +
			"it is tried again by itself"}
	errPooler = errors.New("a pooler between the daemons and the database server shares connections by transaction: " +
		"name the server itself in ARIZUKO_DB, or set pool_mode = session in PgBouncer")
	errRefusedLogin = errors.New("the database server refuses the login: check user, password and database " +
		"in ARIZUKO_DB")
)

// serverError is an error of a known kind, with the remedy where the database is a server.
type serverError struct {
	kind error
	text string
}

func (e *serverError) Error() string        { return e.text }
func (e *serverError) Is(target error) bool { return target == e.kind }

// explainPostgres is Explain for errors of a server and of the connection to it. Codes: the appendix "PostgreSQL Error
// Codes" of its documentation.
func explainPostgres(err error) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		if lost(err) && !errors.Is(err, ErrUnreachable) {
			return fmt.Errorf("%w (%w)", ErrUnreachable, err)
		}
		return err
	}
	for prefix, known := range map[string]error{
		"AZ001": ErrFenced, "53100": errServerFull, "55P03": ErrLocked, "40": ErrLocked, "25006": errServerReadOnly, "XX001": ErrDamaged,
		"XX002": ErrDamaged,
		"25P03": errStalled, "25P04": errStalled, "28": errRefusedLogin, "3D": errRefusedLogin, "22": ErrRefused,
		"23": ErrRefused, "54": ErrRefused,
		"42P05": errPooler, "26000": errPooler, "08": ErrUnreachable, "57P": ErrUnreachable, "53300": ErrUnreachable,
	} {
		if strings.HasPrefix(answer.Code, prefix) && !errors.Is(err, known) {
			return fmt.Errorf("%w (%w)", known, err)
		}
	}
	return err
}

// lost reports whether an error, which is not one of the server's, means that a connection failed or was lost.
func lost(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, pg.ErrRolledBack)
}
