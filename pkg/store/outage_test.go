package store

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

func TestOutage_Repeat_WaitsLessAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 22*time.Second)
		defer cancel()
		began := time.Now()
		var at []time.Duration
		err := NewOutage(slog.New(slog.DiscardHandler), "write").Repeat(ctx, 10*time.Second, func(context.Context) error {
			if at = append(at, time.Since(began)); len(at) == 2 {
				return ErrLocked
			}
			return nil
		})
		want := []time.Duration{0, 10 * time.Second, 11 * time.Second, 21 * time.Second}
		if err != nil || !slices.Equal(at, want) {
			t.Errorf("%v, steps at %v, want %v", err, at, want)
		}
	})
}
