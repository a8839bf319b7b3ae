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
	start := func(name string) *daemon.Process {
		data := dataFolder(t)
		migrate(t, data) // makes the secret
		o := options(data)
		o.Name, o.Base.DB = name, config.Server(database)
		p, err := daemon.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		<-p.Wake.C() // of the connect
		return p
	}
	gated, teled := start("gated"), start("teled")
	if err := teled.Store.Write(t.Context(), func(tx *store.Tx) error { tx.Poke("gated"); return nil }); err != nil {
		t.Fatal(err)
	}
	<-gated.Wake.C()
	gated.Poke("teled")
	<-teled.Wake.C()
}
