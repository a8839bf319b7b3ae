package store

import (
	"context"
	"fmt"
)

// Watch tells when the database has changed, without reading any row. Make one with Store.Watch; it is not safe for
// concurrent use.
type Watch struct {
	version func(context.Context) (string, error) // changes with each commit of any process
	close   func() error
	last    string
}

// Watch opens a watch; the caller closes it.
func (s *Store) Watch(ctx context.Context) (*Watch, error) {
	return s.engine.watch(ctx)
}

// Changed reports whether any process has committed since the last call; the first call reports true. With an error it
// is unknown, and true.
func (w *Watch) Changed(ctx context.Context) (bool, error) {
	version, err := w.version(ctx)
	if err != nil {
		w.last = ""
		return true, fmt.Errorf("read the version of the database: %w", err)
	}
	changed := version != w.last
	w.last = version
	return changed, nil
}

// Close closes the connection.
func (w *Watch) Close() error { return w.close() }
