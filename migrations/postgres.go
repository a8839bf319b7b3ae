package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

//go:embed postgres/*.sql
var postgresFiles embed.FS

// PostgresFS holds the SQL files for a Postgres server. The first one makes the schema of the version that it is
// numbered with: there is no older one for Postgres.
func PostgresFS() fs.ReadFileFS {
	files, _ := fs.Sub(postgresFiles, "postgres") // fails only for an invalid name
	return files.(fs.ReadFileFS)
}

// Postgres returns the steps up for a Postgres server in order. Tests create their databases from it; cmd/migrate
// creates all others.
func Postgres() ([]Migration, error) { return up(PostgresFS()) }

// ErrServer means that the store cannot use a database of a Postgres server; the error says what to do.
var ErrServer = errors.New("database server not usable")

// minServer is the oldest Postgres, as server_version_num, that has pg_current_xact_id, which the store uses.
const minServer = 130000

// CheckServer returns an ErrServer if the server is too old, or the database cannot hold all characters.
func CheckServer(ctx context.Context, db querier) error {
	var encoding string
	var version int
	err := db.QueryRowContext(ctx, `SELECT current_setting('server_encoding'), current_setting('server_version_num')::int`).
		Scan(&encoding, &version)
	if err != nil {
		return err
	}
	return checkVersion(encoding, version)
}

// CheckPooler returns an ErrServer if a pooler gives a server's connection to another client after each transaction:
// what the store prepares, locks and listens for belongs to a connection.
func CheckPooler(ctx context.Context, db *sql.DB) error {
	var pids [2]int
	for try := range len(pids) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close() // after the others have asked
		err = conn.QueryRowContext(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pids[try])
		if err != nil {
			return err
		}
	}
	if pids[0] == pids[1] {
		return fmt.Errorf("%w: a pooler before it shares connections by transaction: name the server itself in "+
			"ARIZUKO_DB, or set pool_mode = session in PgBouncer", ErrServer)
	}
	return nil
}

// checkVersion is CheckServer for an encoding and a server_version_num.
func checkVersion(encoding string, version int) error {
	switch {
	case version < minServer:
		return fmt.Errorf("%w: it is Postgres %d, version %d or later is needed", ErrServer, version/10000,
			minServer/10000)
	case encoding != "UTF8":
		return fmt.Errorf("%w: the database's encoding is %s: make one by CREATE DATABASE … ENCODING 'UTF8' "+
			"TEMPLATE template0", ErrServer, encoding)
	}
	return nil
}
