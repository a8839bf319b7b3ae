package routing

import (
	"context"
	"errors"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func openLoader(t *testing.T, st *store.Store, changed func(*Table)) *Loader {
	t.Helper()
	l, err := Open(t.Context(), st, defaults(), changed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func put(t *testing.T, st *store.Store, r msg.Route) {
	t.Helper()
	if err := st.Write(t.Context(), func(tx *store.Tx) error { return tx.PutRoute(&r) }); err != nil {
		t.Fatal(err)
	}
}

func TestLoader_RowsChanged_Reloads(t *testing.T) {
	path := storetest.Path(t)
	ours, theirs := storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)
	var versions []int64
	l := openLoader(t, ours, func(table *Table) { versions = append(versions, table.Version) })
	look := func() {
		t.Helper()
		if err := l.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if _, _, err := storetest.Put(t.Context(), theirs, &msg.Message{ChatJID: "telegram:1", Direction: msg.In}); err != nil {
		t.Fatal(err)
	}
	look()
	if len(versions) != 1 {
		t.Fatalf("versions %v: a message does not change the table", versions)
	}
	put(t, theirs, msg.Route{Target: "builtin:ping"})
	look()
	put(t, ours, msg.Route{Match: "verb=join", Target: "builtin:drop", Seq: -1})
	look()
	if len(versions) != 3 || versions[0] >= versions[1] || versions[1] >= versions[2] || l.Table().Version != versions[2] {
		t.Errorf("versions %v", versions)
	}
	if got := l.Table().Resolve(t.Context(), &routeapi.Item{ChatJID: "telegram:1", Verb: "join"}, noEngagement{}); got.Reason != msg.ReasonBuiltinDrop {
		t.Errorf("%+v", got)
	}
}

func TestLoader_Restart_VersionGrows(t *testing.T) {
	st := storetest.Open(t)
	before := openLoader(t, st, func(*Table) {}).Table().Version
	if again := openLoader(t, st, func(*Table) {}).Table().Version; again != before || again <= 0 {
		t.Errorf("version %d, then %d without a change", before, again)
	}
	put(t, st, msg.Route{Target: "builtin:ping"})
	if after := openLoader(t, st, func(*Table) {}).Table().Version; after <= before {
		t.Errorf("version %d, before the change %d", after, before)
	}
}

// A commit elsewhere costs the read of one row, however many routes there are.
func TestReload_OtherCommits_ReadNoRoutes(t *testing.T) {
	st := storetest.Open(t)
	putMany(t, st, 10_000)
	l := openLoader(t, st, func(*Table) {})
	table := l.Table()
	allocations := testing.AllocsPerRun(20, func() {
		if err := st.Write(t.Context(), func(tx *store.Tx) error { return tx.PutCursor("gated", "key", "1") }); err != nil {
			t.Fatal(err)
		}
		if err := l.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 200 || l.Table() != table {
		t.Errorf("%v allocations by a commit and a reload", allocations)
	}
}

func TestReload_AnotherUnderWay_HeedsContext(t *testing.T) {
	l := openLoader(t, storetest.Open(t), func(*Table) {})
	l.reload <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Reload(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-l.reload
}

func BenchmarkReload_OtherCommits(b *testing.B) {
	st := storetest.Open(b)
	putMany(b, st, 10_000)
	l, err := Open(b.Context(), st, defaults(), func(*Table) {})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for b.Loop() {
		if err := l.Reload(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func putMany(t testing.TB, st *store.Store, n int) {
	t.Helper()
	err := st.Write(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.PutGroup(&groups("acme")[0]); err != nil {
			return err
		}
		for _, r := range manyRoutes(n) {
			if err := tx.PutRoute(&r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatch_Poke_Reloads(t *testing.T) {
	path := storetest.Path(t)
	ours, theirs := storetest.OpenAt(t, path, nil), storetest.OpenAt(t, path, nil)
	l := openLoader(t, ours, func(*Table) {})
	ctx, cancel := context.WithCancel(t.Context())
	poked, looks, done := make(chan struct{}), make(chan error), make(chan error)
	go func() { done <- l.Watch(ctx, time.Hour, poked, func(err error) { looks <- err }) }()
	put(t, theirs, msg.Route{Target: "builtin:ping"})
	poked <- struct{}{}
	if err := <-looks; err != nil || l.Table().Route(1) == nil {
		t.Errorf("after the poke: %v %+v", err, l.Table().Route(1))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWatch_Interval_Reloads(t *testing.T) {
	l := openLoader(t, storetest.Open(t), func(*Table) {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- l.Watch(ctx, time.Millisecond, nil, func(err error) {
			if err != nil {
				t.Error(err)
			}
			cancel()
		})
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestReload_Error_KeepsTable(t *testing.T) {
	path := storetest.Path(t)
	st, err := store.Open(t.Context(), store.Options{Path: path, Autocheckpoint: store.DefaultAutocheckpoint})
	if err != nil {
		t.Fatal(err)
	}
	put(t, st, msg.Route{Target: "builtin:ping"})
	l := openLoader(t, st, func(*Table) {})
	put(t, st, msg.Route{Target: "builtin:drop"})
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Reload(t.Context()); err == nil {
			t.Error("a look at a closed database succeeded")
		}
	}
	if l.Table().Route(1) == nil {
		t.Error("the old table is gone")
	}
}

func TestOpen_NoDatabase_Fails(t *testing.T) {
	st, err := store.Open(t.Context(), store.Options{Path: storetest.Path(t), Autocheckpoint: store.DefaultAutocheckpoint})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), st, defaults(), func(*Table) {}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestClose_TableStays(t *testing.T) {
	st := storetest.Open(t)
	l, err := Open(t.Context(), st, defaults(), func(*Table) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, st, msg.Route{Target: "builtin:ping"})
	if err := l.Reload(t.Context()); err != nil || l.Table().Route(1) != nil {
		t.Errorf("%v %+v", err, l.Table().Route(1))
	}
}
