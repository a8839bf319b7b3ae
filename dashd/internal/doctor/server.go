package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/store"
	"arizuko/pkg/store/pg"
)

// checkServer checks the settings of a Postgres server, and the database file that is unused because of it.
func checkServer(ctx context.Context, e *examination, database string) {
	if !store.IsServer(database) {
		return
	}
	if s, err := pg.ReadServer(ctx, database); err != nil {
		e.unreadable(store.Explain(err))
	} else {
		checkServerSettings(e, s)
	}
	file := e.Base.DBPath()
	if left, err := store.ReadSchema(ctx, file); err == nil && left.Version > 0 && left.Moved == "" {
		e.Warn("database-unused", file+" is not used, since ARIZUKO_DB names a server: what it has was not moved there",
			"unset ARIZUKO_DB to use it; `migrate copy --to server` moves it to an empty database; "+
				"remove it if it is not needed")
	}
}

func checkServerSettings(e *examination, s pg.Server) {
	e.looked(fmt.Sprintf("server: Postgres %s, %d of %d connections", s.Version, s.Connections, s.MaxConnections))
	var off []string
	for name, value := range map[string]string{"fsync": s.Fsync, "full_page_writes": s.FullPageWrites,
		"synchronous_commit": s.SyncCommit} {
		if value == "off" {
			off = append(off, name)
		}
	}
	if len(off) > 0 {
		slices.Sort(off)
		e.Warn("server-durability", "the server does not wait for its disk ("+strings.Join(off, ", ")+
			" off): a crash of its machine may lose messages that were confirmed, or the database",
			"set them on in postgresql.conf, and for the role and the database")
	}
	if s.Public {
		e.Warn("server-public", "every role of the server may connect to the database, and wake the daemons as "+
			"often as it likes",
			"as the database's owner run REVOKE CONNECT ON DATABASE … FROM PUBLIC")
	}
	if 10*s.Connections >= 9*s.MaxConnections {
		e.Warn("server-connections",
			fmt.Sprintf("the server has %d of at most %d connections: soon a daemon cannot connect", s.Connections,
				s.MaxConnections),
			"raise max_connections in postgresql.conf; a daemon holds up to 7")
	}
}

// standsBy reports whether a daemon that is not ready only waits for the one that runs elsewhere to end.
func (a answer) standsBy() bool {
	return len(a.lines) == 1 && strings.Contains(a.lines[0], a.Name+" stands by")
}
