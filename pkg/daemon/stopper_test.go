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

func TestReadiness(t *testing.T) {
	var r daemon.Readiness
	if waiting, notes := r.Status(); len(waiting)+len(notes) > 0 {
		t.Errorf("the zero value has %v %v", waiting, notes)
	}
	r.Wait("b", "waits for routd", nil)
	r.Wait("a", "schema 1 of 2", nil)
	r.Wait("a", "schema 2 of 3", nil)
	r.Note("table", "route 7 is bad")
	waiting, notes := r.Status()
	if !slices.Equal(waiting, []string{"schema 2 of 3", "waits for routd"}) || !slices.Equal(notes, []string{"route 7 is bad"}) {
		t.Errorf("%v %v", waiting, notes)
	}
	r.Wait("a", "", nil)
	r.Wait("b", "", nil)
	r.Note("table")
	if waiting, notes := r.Status(); len(waiting)+len(notes) > 0 {
		t.Errorf("left: %v %v", waiting, notes)
	}
}
