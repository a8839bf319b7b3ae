package store_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/store"
	"arizuko/pkg/store/pg"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/wake"
)

// pokesOf receives the pokes of a daemon and has taken the first one, that of the connect.
func pokesOf(t testing.TB, database, daemon string, failed func(error)) *pg.Pokes {
	t.Helper()
	p := storetest.Must(store.ListenForPokes(database, daemon, failed))(t)
	t.Cleanup(func() { _ = p.Close() })
	storetest.Receive(t, "the poke of the connect", p.C())
	return p
}

func noFailure(t testing.TB) func(error) {
	return func(err error) { t.Error(err) }
}

func TestPokes_TransactionCommitted_Arrive(t *testing.T) {
	t.Parallel()
	onServer(t)
	database := storetest.Path(t)
	s := storetest.OpenAt(t, database, nil)
	gated, teled := pokesOf(t, database, "gated", noFailure(t)), pokesOf(t, database, "teled+work", noFailure(t))

	if err := s.Write(t.Context(), puts("undone", store.ErrStale)); !errors.Is(err, store.ErrStale) {
		t.Fatal(err)
	}
	s.WriteAll(t.Context(), puts("undone", store.ErrStale), func(tx *store.Tx) error { tx.Poke("teled+work"); return nil })
	storetest.Receive(t, "a poke", teled.C())
	if len(gated.C()) != 0 {
		t.Error("a poke of a write that failed")
	}
	storetest.Write(t, s, puts("one", nil))
	storetest.Receive(t, "a poke", gated.C())
	if got := contents(t, s); len(got) != 1 {
		t.Errorf("%q are there when the poke comes", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { // no daemon of arizuko
		tx.Poke("it's")
		tx.Poke(strings.Repeat("x", 100))
		return nil
	})
	if len(teled.C()) != 0 {
		t.Error("a poke of another daemon")
	}
}

func TestPokes_Flood_WakesAreBounded(t *testing.T) {
	t.Parallel()
	onServer(t)
	database := storetest.Path(t)
	s, gated := storetest.OpenAt(t, database, nil), pokesOf(t, database, "gated", noFailure(t))
	began, wakes := time.Now(), 0
	for range 1000 {
		storetest.Write(t, s, func(tx *store.Tx) error { tx.Poke("gated"); return nil })
		select {
		case <-gated.C():
			wakes++
		case <-time.After(time.Millisecond):
		}
	}
	storetest.Write(t, s, func(tx *store.Tx) error { tx.Poke("gated"); return nil })
	storetest.Receive(t, "a poke after the flood", gated.C())
	if most := 51 * (1 + int(time.Since(began)/(100*time.Millisecond))); wakes > most {
		t.Errorf("%d wakes in %s, want at most %d", wakes, time.Since(began), most)
	}
}

// Pokes are lost while there is no connection: there is one after the next connect.
func TestPokes_ConnectionLost_OnePokeAfterTheNext(t *testing.T) {
	t.Parallel()
	onServer(t)
	database := storetest.Path(t)
	p := proxy(t, database)
	failures := make(chan error, 100)
	gated := pokesOf(t, p.URL(), "gated", func(err error) { failures <- err })
	p.Cut()
	err := storetest.Receive(t, "the failure", failures)
	if !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
	storetest.Write(t, storetest.OpenAt(t, database, nil), puts("meanwhile", nil))
	<-time.After(500 * time.Millisecond) // a few attempts
	if len(gated.C()) != 0 {
		t.Error("a poke without a connection")
	}
	p.Heal()
	storetest.Receive(t, "the poke of the connect", gated.C())
	if n := len(failures); n != 0 {
		t.Errorf("%d further failures of one outage", n)
	}
}

// BenchmarkWake is the time from a commit's begin to its poke in the daemon that it is for.
func BenchmarkWake(b *testing.B) {
	database := storetest.Path(b)
	var poked <-chan struct{}
	var poke func(string)
	if store.IsServer(database) {
		poked = pokesOf(b, database, "gated", noFailure(b)).C()
	} else {
		dir := storetest.Must(os.MkdirTemp("", "wake"))(b)
		defer os.RemoveAll(dir)
		listener := storetest.Must(wake.Listen(dir, "gated"))(b)
		defer listener.Close()
		poker := wake.NewPoker(dir, func(_ string, err error) { b.Error(err) })
		defer poker.Close()
		poke, poked = poker.Poke, listener.C()
	}
	s := storetest.OpenAt(b, database, poke)
	committed := time.Duration(0)
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		if _, _, err := storetest.Put(context.Background(), s, fresh(i)); err != nil {
			b.Fatal(err)
		}
		committed += time.Since(begun)
		<-poked
	}
	b.ReportMetric(float64(committed.Nanoseconds())/float64(b.N), "ns/commit")
}
