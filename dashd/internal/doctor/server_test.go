package doctor

import (
	"strings"
	"testing"

	"arizuko/migrations/dbcopy"
	"arizuko/pkg/config"
	"arizuko/pkg/facts"
	"arizuko/pkg/store/pg"
	"arizuko/pkg/store/storetest"
)

func TestExamine_DatabaseThatWasMoved_IsRefused(t *testing.T) {
	runAll(t, []broken{
		{"moved", func(x *instance) {
			x.sql(`INSERT INTO cursors (daemon, key, value) VALUES ('migrate', 'moved', 'postgres://arizuko@db/arizuko at noon')`)
		}, "database-moved DATA/arizuko.db was copied to postgres://arizuko@db/arizuko at noon: daemons do not start on it", "set or unset ARIZUKO_DB", 78},
	})
}

// onServer moves the instance to a server.
func (x *instance) onServer() {
	x.t.Helper()
	if storetest.Server() == "" {
		x.t.Skip("without a server; `make test DB=postgres` has one")
	}
	server := storetest.Path(x.t)
	_, err := dbcopy.ToServer(x.t.Context(), x.cfg.Base.DBPath(), server, dbcopy.Options{})
	x.ok(err)
	x.cfg.Base.DB = config.Server(server)
	for _, socket := range x.sockets { // with a server there are none
		x.ok(socket.Close())
	}
}

func TestExamine_Server_OnlyWhatIsWrongIsFound(t *testing.T) {
	runAll(t, []broken{
		// The server of the tests writes nothing to its disk.
		{"fsync", func(x *instance) { x.onServer() }, "server-durability the server does not wait for its disk (fsync off)", "set them on", 0},
		{"standing by", func(x *instance) {
			x.onServer()
			x.answer("routd", "routd stands by: the one on other:/data runs")
		}, "server-durability ", "set them on", 0},
	})
}

func TestExamine_FileBesideAServer_IsFound(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	x.onServer()
	x.sql(`DELETE FROM cursors WHERE daemon = 'migrate'`)
	report := Examine(t.Context(), x.cfg)
	if len(report.Findings) != 2 || report.Findings[1].Kind != "database-unused" && report.Findings[0].Kind != "database-unused" {
		t.Errorf("%+v", report.Findings)
	}
	if !strings.Contains(strings.Join(report.Facts, "\n"), "server: Postgres ") {
		t.Errorf("%q", report.Facts)
	}
}

func TestExamine_ServerSettings_Warn(t *testing.T) {
	t.Parallel()
	good := pg.Server{Version: "15.6", Fsync: "on", FullPageWrites: "on", SyncCommit: "remote_apply", Connections: 89, MaxConnections: 100}
	for want, change := range map[string]func(*pg.Server){
		"": func(*pg.Server) {},
		"(full_page_writes, synchronous_commit off)": func(s *pg.Server) { s.SyncCommit, s.FullPageWrites = "off", "off" },
		"90 of at most 100 connections":              func(s *pg.Server) { s.Connections++ },
	} {
		s, e := good, &examination{redact: config.NewRedactor()}
		change(&s)
		checkServerSettings(e, s)
		found := e.Found
		if (want == "") != (len(found) == 0) || len(found) > 1 || want != "" && (!strings.Contains(found[0].Text, want) || found[0].Level != facts.Warning) {
			t.Errorf("want %q, found %+v", want, found)
		}
	}
}
