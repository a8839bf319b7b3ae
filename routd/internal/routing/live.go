package routing

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// neverSeen is no value a change counter takes.
const neverSeen = -1

// Live is the table in force. It follows the database, whoever changes it.
type Live struct {
	store    *store.Store
	counter  *store.ChangeCounter
	defaults msg.Impulse
	changed  func(*Table)
	current  atomic.Pointer[Table]

	mu     sync.Mutex // one Look at a time
	seen   int64      // the counter's value before the rows of current were read
	closed bool
}

// Open reads the first table. changed is called with each table once it is in force, the first
// one included. Close the Live before the store.
func Open(ctx context.Context, st *store.Store, defaults msg.Impulse, changed func(*Table)) (*Live, error) {
	counter, err := st.OpenChangeCounter(ctx)
	if err != nil {
		return nil, err
	}
	l := &Live{store: st, counter: counter, defaults: defaults, changed: changed, seen: neverSeen}
	l.current.Store(&Table{})
	if err := l.Look(ctx); err != nil {
		_ = counter.Close()
		return nil, err
	}
	return l, nil
}

// Close gives up following the database: the last table stays in force, Look does nothing.
func (l *Live) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.counter.Close()
}

// Table is the one in force.
func (l *Live) Table() *Table { return l.current.Load() }

// Look puts a new table in force if routes or groups have changed. It costs a few microseconds
// when nobody has written anything to the database. On an error the old table stays.
func (l *Live) Look(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	value, err := l.counter.Value(ctx)
	if err != nil {
		return fmt.Errorf("look for changed routes: %w", err)
	}
	if value == l.seen {
		return nil
	}
	return l.read(ctx, value)
}

// read takes the counter's value from before, so that a commit during the reads is seen by the
// next Look. Groups come second: a route is written after its group.
func (l *Live) read(ctx context.Context, value int64) error {
	routes, err := l.store.Routes(ctx)
	if err != nil {
		return fmt.Errorf("read routes: %w", err)
	}
	groups, err := l.store.Groups(ctx)
	if err != nil {
		return fmt.Errorf("read groups: %w", err)
	}
	l.seen = value
	old := l.Table()
	if old.Version > 0 && old.same(routes, groups) {
		return nil
	}
	t := New(routes, groups, l.defaults)
	// The clock keeps versions growing over restarts.
	t.Version = max(old.Version+1, time.Now().UnixMilli())
	l.current.Store(t)
	l.changed(t)
	return nil
}

// Watch looks after each poke and at least every interval, until ctx ends. report is told how
// each look went.
func (l *Live) Watch(ctx context.Context, interval time.Duration, poked <-chan struct{}, report func(error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-poked:
		}
		err := l.Look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		report(err)
	}
}
