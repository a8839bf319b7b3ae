package routing

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// neverRead is a version that the database never has.
const neverRead = -1

// Loader holds the current table and reloads it when its rows in the database change.
type Loader struct {
	store    *store.Store
	defaults msg.Impulse
	changed  func(*Table)
	current  atomic.Pointer[Table]

	reload chan struct{} // holds a value while a Reload runs; a waiting one heeds its context
	closed atomic.Bool
}

// Open reads the first table. changed is called with each table once it is current, the first one
// included. Close the Loader before the store.
func Open(ctx context.Context, st *store.Store, defaults msg.Impulse, changed func(*Table)) (*Loader, error) {
	l := &Loader{store: st, defaults: defaults, changed: changed, reload: make(chan struct{}, 1)}
	l.current.Store(&Table{Version: neverRead})
	if err := l.Reload(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// Close ends the reloading: it waits for a Reload under way, the last table stays current, and later
// Reloads do nothing.
func (l *Loader) Close() error {
	l.closed.Store(true)
	l.reload <- struct{}{}
	<-l.reload
	return nil
}

// Table returns the current table.
func (l *Loader) Table() *Table { return l.current.Load() }

// Reload replaces the table if routes or groups have changed. It costs one row read if not, whatever
// else was written. On an error the old table stays.
func (l *Loader) Reload(ctx context.Context) error {
	select {
	case l.reload <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.reload }()
	if l.closed.Load() {
		return nil
	}
	version, err := l.store.RoutingVersion(ctx)
	if err != nil {
		return fmt.Errorf("read version of routes and groups: %w", err)
	}
	if version == l.Table().Version {
		return nil
	}
	return l.read(ctx, version)
}

// read takes the version from before, so that a commit during the reads is seen by the next Reload.
// Groups come second: a route is written after its group.
func (l *Loader) read(ctx context.Context, version int64) error {
	routes, err := l.store.Routes(ctx)
	if err != nil {
		return fmt.Errorf("read routes: %w", err)
	}
	groups, err := l.store.Groups(ctx)
	if err != nil {
		return fmt.Errorf("read groups: %w", err)
	}
	t := New(routes, groups, l.defaults)
	t.Version = version
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
