package pg

import "context"

// Server describes a server, in its own words.
type Server struct {
	Version        string // such as 15.6
	Fsync          string // on, or a crash of its machine may damage the database
	FullPageWrites string // on, or the same
	SyncCommit     string // synchronous_commit: off, and it may lose what it has confirmed
	Connections    int    // of all programs, to all its databases
	MaxConnections int
	Public         bool // other roles may connect to the database, too
}

// ReadServer asks the server of a database.
func ReadServer(ctx context.Context, database string) (s Server, err error) {
	db, err := OpenReading(database, 1)
	if err != nil {
		return s, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx,
		`SELECT current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
		current_setting('max_connections')::int, has_database_privilege('public', current_database(), 'CONNECT')
			AND EXISTS (SELECT 1 FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND rolname <> current_user)`).
		Scan(&s.Version, &s.Fsync, &s.FullPageWrites, &s.SyncCommit, &s.Connections, &s.MaxConnections,
			&s.Public)
	return s, err
}
