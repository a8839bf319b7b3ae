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

// neverSeen is a value that a change counter never has.
const neverSeen = -1

// Loader holds the current table and reloads it when its rows in the database change.
type Loader struct {
	store    *store.Store
	counter  *store.ChangeCounter
	defaults msg.Impulse
	changed  func(*Table)
	current  atomic.Pointer[Table]

	mu     sync.Mutex // one Reload at a time
	seen   int64      // the counter's value before the rows of current were read
	closed bool
}

// Open reads the first table. changed is called with each table once it is current, the first one
// included. Close the Loader before the store.
func Open(ctx context.Context, st *store.Store, defaults msg.Impulse, changed func(*Table)) (*Loader, error) {
	counter, err := st.OpenChangeCounter(ctx)
	if err != nil {
		return nil, err
	}
	l := &Loader{store: st, counter: counter, defaults: defaults, changed: changed, seen: neverSeen}
	l.current.Store(&Table{})
	if err := l.Reload(ctx); err != nil {
		_ = counter.Close()
		return nil, err
	}
	return l, nil
}

// Close ends the reloading: the last table stays current, Reload does nothing.
func (l *Loader) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.counter.Close()
}

// Table returns the current table.
func (l *Loader) Table() *Table { return l.current.Load() }

// Reload replaces the table if routes or groups have changed. It costs a few microseconds when
// nothing was written to the database. On an error the old table stays.
func (l *Loader) Reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	value, err := l.counter.Value(ctx)
	if err != nil {
		return fmt.Errorf("read change counter: %w", err)
	}
	if value == l.seen {
		return nil
	}
	return l.read(ctx, value)
}

// read takes the counter's value from before, so that a commit during the reads is seen by the
// next Reload. Groups come second: a route is written after its group.
func (l *Loader) read(ctx context.Context, value int64) error {
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

// Watch reloads after each poke and at least every interval, until ctx ends. report receives the
// result of each reload.
func (l *Loader) Watch(ctx context.Context, interval time.Duration, poked <-chan struct{}, report func(error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-poked:
		}
		err := l.Reload(ctx)
		if ctx.Err() != nil {
			return nil
		}
		report(err)
	}
}
