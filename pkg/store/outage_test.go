package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestOutage_ManyFailures_AreTwoLines(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := NewOutage(slog.New(slog.NewTextHandler(&log, nil)), "write")
	_ = o.Note(t.Context(), ErrRefused)
	for range 1000 {
		_ = o.Note(t.Context(), ErrLocked)
		_ = o.Note(t.Context(), ErrStale)
	}
	_ = o.Note(t.Context(), nil)
	_ = o.Note(t.Context(), nil)
	if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), "step=write count=1000") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
