package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/store/pg"
)

// server is the engine of a Postgres server.
type server struct {
	*pg.DB
	texts sync.Map // query → its translation
}

func openServer(ctx context.Context, o Options) (engine, error) {
	reading, writing := readers, serverWriters
	if o.ManyChats {
		reading, writing = serverReaders, manyWriters
	}
	db, err := pg.Open(ctx, o.Path, reading, writing)
	if err != nil {
		return nil, err
	}
	return &server{DB: db}, nil
}

func (e *server) readers() *sql.DB { return e.Readers() }

func (e *server) writers() (all []writer) {
	for _, w := range e.Writers() {
		all = append(all, &serverWriter{e, w})
	}
	return all
}

// serverWriter is a writer of a server.
type serverWriter struct {
	server *server
	*pg.Writer
}

func (w *serverWriter) begin(timeout time.Duration, process int64, scope Scope, waited func()) (*statements, error) {
	p, err := w.Begin(timeout, process, scope, waited)
	if err != nil {
		return nil, err
	}
	return &statements{runner: &piped{w.server, p}, dialect: w.server, uncancelled: true}, nil
}

func (w *serverWriter) restart(*statements) error                  { return w.Restart() }
func (w *serverWriter) commit(_ *statements, poked []string) error { return w.Commit(poked) }
func (w *serverWriter) rollback(*statements)                       { w.Rollback() }

func (e *server) watch(context.Context) (*Watch, error) {
	return &Watch{version: e.Version, close: func() error { return nil }}, nil // the pool is the store's
}
func (e *server) giveUp()      { e.GiveUp() }
func (e *server) close() error { return e.Close() }

func (e *server) renew(ctx context.Context, process int64) (renewed bool, err error) {
	return e.Renew(ctx, e.translate(`UPDATE processes SET until = clock_ms() + ?2+0 WHERE id = ?1`), process, LeaseTime.Milliseconds())
}

// arguments removes NUL from texts, and bytes that are no UTF-8: Postgres refuses both.
func (e *server) arguments(args []any) []any {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = CleanText(text)
		}
	}
	return args
}

func (e *server) ordered() bool { return false }

func (e *server) insert(st *statements, query string, args []any) (id int64, inserted bool, err error) {
	inserted, err = st.get(context.Background(), []any{&id}, query+" RETURNING id", args...)
	return id, inserted, err
}

// piped runs the statements of a transaction on a server.
type piped struct {
	server *server
	*pg.Pipeline
}

// text returns a query as the server gets it.
func (p *piped) text(query string) string {
	if text, ok := p.server.texts.Load(query); ok {
		return text.(string)
	}
	text := p.server.translate(query)
	p.server.texts.Store(query, text)
	return text
}

func (p *piped) exec(query string, args []any) (sql.Result, error) {
	changed, err := p.Exec(p.text(query), p.server.arguments(args))
	return driver.RowsAffected(changed), err
}

func (p *piped) later(otherwise error, query string, args []any) error {
	if otherwise != nil {
		p.Expect(otherwise, p.text(query), p.server.arguments(args))
	} else {
		p.Later(p.text(query), p.server.arguments(args))
	}
	return nil
}

func (p *piped) query(_ context.Context, row func(Scan) (bool, error), query string, args []any) error {
	return p.Query(row, p.text(query), p.server.arguments(args))
}

func (p *piped) savepoint() error {
	p.Savepoint()
	return nil
}

func (p *piped) settle() error { return p.Settle() }
func (p *piped) undo() error   { return p.Undo() }

func (p *piped) release() error {
	p.Release()
	return nil
}

// Translate returns a statement in SQLite's words as a Postgres server takes it. It is for programs that run statements
// of their own on both, as tests do.
func Translate(query string) string { return new(server).translate(query) }

// translate returns a statement for Postgres. One that no translation word by word does for is in postgresStatements.
func (e *server) translate(query string) string {
	if own, found := postgresStatements[query]; found {
		query = own
	}
	query = strings.ReplaceAll(query, cutContent, "substr(m.content, 1, 262144)")
	query = strings.ReplaceAll(query, DecisionNumber, "nextval('decision_numbers')")
	query = strings.ReplaceAll(query, clock, "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")
	return pg.Translate(query)
}

// The statements that Postgres has in words of its own. A text is indexed as the words that this package finds in it:
// the server's own parser knows other words, depending on its locale.
const (
	postgresTexts = `SELECT id, substr(content, 1, 16384) FROM messages WHERE id > $1 AND id <= $2 AND content <> ''`
	// Of rows that have changed, those that are left.
	postgresChanged = `SELECT id, substr(content, 1, 16384) FROM messages WHERE content <> '' AND id IN (SELECT id FROM search_deleted WHERE id <= $1)`
	postgresWords   = `INSERT INTO message_search (docid, words) SELECT * FROM unnest($1::bigint[], $2::text[]::tsvector[])`
)

// postgresStatements replaces statements that no translation word by word does for.
var postgresStatements = map[string]string{
	QuerySearchHits: `SELECT docid, docid FROM message_search WHERE words @@ ?1::tsquery AND docid < ?2 AND docid >= ?3 ORDER BY docid DESC LIMIT ?4+0`,
	// A transaction has a number before it inserts anything, since it begins with its mark. A snapshot would not do: its
	// end is the last number that has ended, and its beginning is that of any database of the server.
	queryRunning: `SELECT coalesce(min(a.number), 0), coalesce(max(a.number), 0) FROM (SELECT CAST(CAST(backend_xid AS text) AS bigint) AS number
		FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL
			AND (xact_start IS NULL OR xact_start > clock_timestamp() - interval '5 minutes')) a`, // see maxRunning; those of other roles may be hidden
	// SQLite reads a list of ids in its order by itself.
	QueryListed:      strings.Replace(QueryListed, " LIMIT ?12", " ORDER BY j.key LIMIT ?12", 1),
	QueryListedFound: strings.Replace(QueryListedFound, " LIMIT ?12", " ORDER BY j.key LIMIT ?12", 1),
}

// ListenForPokes receives the pokes of a daemon from a server until it is closed. failed is called once for each time
// that the connection is lost or cannot be made, with the first error.
func ListenForPokes(database, daemon string, failed func(error)) (*pg.Pokes, error) {
	return pg.Listen(database, daemon, func(err error) { failed(Explain(err)) })
}
