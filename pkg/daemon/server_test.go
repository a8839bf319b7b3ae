package daemon_test

import (
	"testing"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// Two daemons on data folders of their own, as on two machines, share a database: the one pokes the other.
func TestProcess_OnServer_PokesOfOtherMachinesArrive(t *testing.T) {
	if storetest.Server() == "" {
		t.Skip("needs a Postgres server")
	}
	database := storetest.Path(t)
	startDaemon := func(name string) *daemon.Process {
		o := options(migratedFolder(t)) // with a secret
		o.Name, o.Base.DB = name, config.Server(database)
		p := start(t, o)
		t.Cleanup(p.Close)
		<-p.Wake.C() // of the connect
		return p
	}
	gated, teled := startDaemon("gated"), startDaemon("teled")
	if err := teled.Store.Write(t.Context(), func(tx *store.Tx) error { tx.Poke("gated"); return nil }); err != nil {
		t.Fatal(err)
	}
	<-gated.Wake.C()
	gated.Poke("teled")
	<-teled.Wake.C()
}
