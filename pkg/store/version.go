package store

import (
	"context"
	"fmt"
)

// Watch tells when the database has changed, without reading any row. Make one with Store.Watch; it is not safe for
// concurrent use.
type Watch struct {
	reader versionReader
	last   string
}

// Watch opens a watch; the caller closes it.
func (s *Store) Watch(ctx context.Context) (*Watch, error) {
	reader, err := s.engine.watch(ctx)
	if err != nil {
		return nil, err
	}
	return &Watch{reader: reader}, nil
}

// Changed reports whether any process has committed since the last call; the first call reports true. With an error it
// is unknown, and true.
func (w *Watch) Changed(ctx context.Context) (bool, error) {
	version, err := w.reader.version(ctx)
	if err != nil {
		w.last = ""
		return true, fmt.Errorf("read the version of the database: %w", err)
	}
	changed := version != w.last
	w.last = version
	return changed, nil
}

// Close closes the connection.
func (w *Watch) Close() error { return w.reader.Close() }
