package pg

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"arizuko/migrations"
)

// ErrURL means that the URL of a database is wrong.
var ErrURL = errors.New("ARIZUKO_DB is not a URL such as postgres://user:password@host/database")

// Timeouts of connections to a server. A server or network that does not answer for answerTimeout is given up: that is
// longer than a commit waits for a standby that is being replaced.
const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 15 * time.Second
)

// writerParameters are settings of connections that write, unless the URL has others. A process that stalls within a
// transaction, or whose machine has died, loses the connection, so that the others write on before their wait for the
// lock has ended.
var writerParameters = map[string]string{
	"idle_in_transaction_session_timeout": "3000", // ms
	"tcp_keepalives_idle":                 "4",    // s
	"tcp_keepalives_interval":             "1",    // s
	"tcp_keepalives_count":                "4",
	"tcp_user_timeout":                    "8000", // ms
}

// parse reads the URL of a database. Its errors do not contain the password.
func parse(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = dialTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = fmt.Sprintf("arizuko/%d", migrations.Latest()) // for `migrate down`
	}
	if config.ValidateConnect == nil && severalServers(config) { // only one of them takes writes
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &impatientConn{conn}, nil
	}
	return config, nil
}

func severalServers(config *pgx.ConnConfig) bool {
	return slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != config.Host ||
			f.Port != config.Port
	})
}

// writing is the configuration of connections that write.
func writing(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	settings := map[string]string{}
	for name, value := range writerParameters {
		settings[name] = cmp.Or(config.RuntimeParams[name], value)
	}
	return set(config, settings)
}

// set makes each connection set parameters once it is made: a pooler, such as PgBouncer, refuses most of them as
// parameters of its start.
func set(config *pgx.ConnConfig, settings map[string]string) *pgx.ConnConfig {
	var statements []string
	for name, value := range settings {
		delete(config.RuntimeParams, name)
		statements = append(statements, "SET "+name+" = '"+strings.ReplaceAll(value, "'", "''")+"'")
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.Exec(ctx, strings.Join(statements, ";")).Close()
	}
	return config
}

// reading is the configuration of connections that only read, on the server that takes writes: a standby may lag
// behind.
func reading(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	set(config, map[string]string{"default_transaction_read_only": "on"})
	if config.ValidateConnect != nil { // it may ask whether transactions are read-only
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	return config
}

// impatientConn fails a read or write that gets nowhere for answerTimeout, so that a server that accepts and never
// answers blocks no writer for ever.
type impatientConn struct{ net.Conn }

func (c *impatientConn) Read(b []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(answerTimeout))
	return c.Conn.Read(b)
}

func (c *impatientConn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(answerTimeout))
	return c.Conn.Write(b)
}

func openPool(config *pgx.ConnConfig, size int) *sql.DB {
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(_ context.Context, c *pgx.Conn) error {
		adaptTypes(c)
		return nil
	}))
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db
}

// OpenReading opens the pool of a number of connections that only read.
func OpenReading(url string, size int) (*sql.DB, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	return openPool(reading(config), size), nil
}
