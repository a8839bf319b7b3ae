package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// worker is a process that takes its part of the jobs.
type worker struct {
	*shares
	works []bool // what the last take said
}

func newWorker(t *testing.T, st *store.Store, place string, jobs int) *worker {
	t.Helper()
	l := &Leases{st: st, log: slog.New(slog.DiscardHandler), ended: make(chan struct{})}
	storetest.Write(t, st, func(tx *store.Tx) (err error) {
		l.ID, _, err = rows.Join(tx, "gated", place, "", "v1")
		return err
	})
	return &worker{&shares{l, "gated", make([]bool, jobs)}, make([]bool, jobs)}
}

// balance lets workers balance one after the other. Before each step of each, no job may be of two.
func balance(t *testing.T, workers ...*worker) {
	t.Helper()
	for _, w := range workers {
		err := w.balance(t.Context(), func(_ context.Context, has []bool) error {
			w.works = has
			for job, mine := range has {
				for _, other := range workers {
					if mine && other != w && other.works[job] {
						t.Errorf("two work on job %d", job)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (w *worker) count() (n int) {
	for _, mine := range w.works {
		if mine {
			n++
		}
	}
	return n
}

// counts are the jobs of workers, after which all n must be of one.
func counts(t *testing.T, n int, workers ...*worker) (all []int) {
	t.Helper()
	for _, w := range workers {
		all = append(all, w.count())
		n -= w.count()
	}
	if n != 0 {
		t.Errorf("%v: %d jobs are left", all, n)
	}
	return all
}

func TestShare_ProcessesComeAndGo_EachHasItsPart(t *testing.T) {
	t.Parallel()
	const jobs = 8
	st := storetest.Open(t)
	a := newWorker(t, st, "host1", jobs)
	balance(t, a)
	balance(t, a)
	counts(t, jobs, a)
	b, c := newWorker(t, st, "host2", jobs), newWorker(t, st, "host3", jobs)
	for range 4 {
		balance(t, a, b, c)
	}
	if got := counts(t, jobs, a, b, c); got[0] != 3 || got[1] != 3 || got[2] != 2 {
		t.Errorf("%v, want 3, 3 and 2", got)
	}
	before := c.works
	balance(t, a, b, c)
	for job := range before {
		if before[job] != c.works[job] {
			t.Error("a job moved though nothing had changed")
		}
	}

	storetest.Write(t, st, func(tx *store.Tx) error { return rows.LeaveProcess(tx, b.ID) })
	for range 2 {
		balance(t, a, c)
	}
	if got := counts(t, jobs, a, c); got[0] != 4 {
		t.Errorf("%v, want 4 each", got)
	}
	storetest.Write(t, st, func(tx *store.Tx) error { return tx.Exec(`UPDATE processes SET until = 1 WHERE id = ?`, a.ID) })
	for range 2 {
		balance(t, c)
	}
	counts(t, jobs, c)
}

// A process that is alone goes on after its time has passed, as when the server was away.
func TestShare_AloneAndLate_GoesOn(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	a := newWorker(t, st, "host1", 4)
	for range 2 {
		balance(t, a)
	}
	storetest.Write(t, st, func(tx *store.Tx) error { return tx.Exec(`UPDATE processes SET until = 1`) })
	balance(t, a)
	if n := storetest.Value[int](t, st, `SELECT count(*) FROM processes`); n != 1 {
		t.Fatal("it has fenced itself")
	}
	storetest.Write(t, st, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE processes SET until = clock_ms() + 10000`)
	})
	for range 2 {
		balance(t, a)
	}
	counts(t, 4, a)
}

func TestUnshare_OthersGoOnAtOnce(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	a, b := newWorker(t, st, "host1", 4), newWorker(t, st, "host2", 4)
	for range 2 {
		balance(t, a)
	}
	a.Unshare("gated")
	a.works = make([]bool, 4)
	for range 2 {
		balance(t, b)
	}
	counts(t, 4, b)
}

// Without an answer of the database, or after others may have taken over, a process ends all the same.
func TestUnshare_NoAnswer_GivesUp(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	a := newWorker(t, st, "host1", 4)
	for range 2 {
		balance(t, a)
	}
	busy, free := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = st.Write(context.Background(), func(*store.Tx) error {
			close(busy)
			<-free
			return nil
		})
	})
	<-busy
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := a.release(ctx, func(*store.Tx) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(free)
	all.Wait()
	close(a.ended)
	a.Unshare("gated")
	if n := storetest.Value[int](t, st, `SELECT count(*) FROM leases`); n != 5 {
		t.Errorf("%d leases, want those that were there: 4 and one of the process", n)
	}
}

// While take has not returned, no other process gets the jobs that it gives up.
func TestShare_StillAtWork_KeepsItsJobs(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	a, b := newWorker(t, st, "host1", 4), newWorker(t, st, "host2", 4)
	for range 2 {
		balance(t, a)
	}
	balance(t, b)
	entered, leave := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = a.balance(t.Context(), func(context.Context, []bool) error {
			close(entered)
			<-leave
			return nil
		})
	})
	<-entered
	balance(t, b)
	if b.count() != 0 {
		t.Errorf("%d jobs were taken from a process that works on them", b.count())
	}
	close(leave)
	all.Wait()
	balance(t, b)
	if b.count() != 2 {
		t.Errorf("%d jobs, want 2", b.count())
	}
}

func TestShare_ContextEnds_Returns(t *testing.T) {
	t.Parallel()
	w := newWorker(t, storetest.Open(t), "host1", 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	err := w.Share(ctx, "gated", 2, func(context.Context, []bool) error {
		cancel()
		return nil
	})
	if err != context.Canceled {
		t.Error(err)
	}
}
