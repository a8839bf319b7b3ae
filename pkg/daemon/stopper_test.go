package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
)

func TestStopper_StopAll_RunsLastFirst(t *testing.T) {
	var order []string
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var s daemon.Stopper
	for _, name := range []string{"lock", "store", "http"} {
		s.Add(name, func(context.Context) error {
			order = append(order, name)
			if name == "store" {
				return errors.New("busy")
			}
			return nil
		})
	}
	s.StopAll(t.Context(), log)
	s.StopAll(t.Context(), log)
	if want := []string{"http", "store", "lock"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "step=store err=busy") {
		t.Errorf("log %q", text)
	}
}
