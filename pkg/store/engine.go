package store

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"time"
)

// engine is the database that a store runs on: a file of SQLite, or a Postgres server.
type engine interface {
	dialect
	// writers are independent of each other, and the first takes the writes without a scope. A file has one.
	writers() []writer
	// readers is the pool of connections that read.
	readers() *sql.DB
	// watch opens a connection for Store.Watch.
	watch(ctx context.Context) (*Watch, error)
	// renew renews the lease of a process beside the transactions of others, and reports whether the process is there
	// still. A file, which machines do not share, returns errors.ErrUnsupported.
	renew(ctx context.Context, process int64) (renewed bool, err error)
	// giveUp ends the attempts of commit to find out whether it was stored, for a process that ends. It is called at
	// most once.
	giveUp()
	close() error
}

// dialect translates the statements of this package for an engine.
type dialect interface {
	// translate returns a statement of this package in the engine's SQL.
	translate(query string) string
	// arguments returns the parameters as the engine takes them.
	arguments(args []any) []any
	// ordered reports whether rows become visible in the order of their numbers.
	ordered() bool
	// insert runs an INSERT into a table with numbered rows and returns the new row's id, or false if it inserted none.
	insert(st *statements, query string, args []any) (id int64, inserted bool, err error)
	// indexRows puts the rows after one and up to another into the full-text index.
	indexRows(st *statements, after, last int64) error
	// reindexRows does the same for those that have changed since, up to an id of search_deleted.
	reindexRows(st *statements, last int64) error
	// match returns an expression of SearchQuery in the words of the engine's index.
	match(expression string) string
}

// writer runs one transaction after the other, for one goroutine.
type writer interface {
	// begin begins a transaction that touches what belongs to a scope, and waits for its turn to write, at most timeout,
	// now or at the first statement whose result is needed. It then calls waited, whether it has its turn or not. With
	// an error it holds nothing. The transaction fails with ErrFenced if process, unless it is 0, is fenced.
	begin(timeout time.Duration, process int64, scope Scope, waited func()) (*statements, error)
	// restart rolls the transaction back and begins it again.
	restart(st *statements) error
	// commit ends the transaction; without an error its writes are on disk, with one they never will be. A server pokes
	// the daemons with it.
	commit(st *statements, poked []string) error
	rollback(st *statements)
}

// clock stands in statements for the database's clock, in unix ms: the only one that machines share.
const clock = "clock_ms()"

// IsServer reports whether a database is a Postgres server, named by a URL, as opposed to a file.
func IsServer(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// Name names a database in a message: a file's path, or a server's URL without the password.
func Name(database string) string {
	if !IsServer(database) {
		return database
	}
	u, err := url.Parse(database)
	if err != nil {
		return "the server of ARIZUKO_DB"
	}
	return u.Redacted()
}

func openEngine(ctx context.Context, o Options) (engine, error) {
	if IsServer(o.Path) {
		return openServer(ctx, o)
	}
	return openSQLite(ctx, o)
}
