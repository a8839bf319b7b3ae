package fakeserver_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// call is a call of some platform: "send …" sends messages, "look" only reads.
type call string

func (c *call) acts() bool { return *c != "look" }

func newRecord() *fakeserver.Record[call] { return fakeserver.NewRecord((*call).acts) }

func TestRecord_CallsAndSent(t *testing.T) {
	r := newRecord()
	all := []call{"look", "send 1", "delete", "send 2"}
	for _, c := range all {
		r.Add(c)
	}
	if got := r.Calls(); !slices.Equal(got, all) {
		t.Errorf("calls %q", got)
	}
	if got := r.Sent(); !slices.Equal(got, all[1:]) {
		t.Errorf("sent %q", got)
	}
	r.Update(1, func(c *call) { *c = "send 0" })
	if got := r.Sent()[0]; got != "send 0" {
		t.Errorf("updated to %q", got)
	}
	r.Update(1, func(c *call) { *c = all[1] })
	r.Calls()[0] = "another"
	if got := r.Calls(); !slices.Equal(got, all) {
		t.Errorf("the caller changed the record to %q", got)
	}
}

func TestRecord_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecord()
		waited := make(chan call)
		go func() {
			c, err := r.Wait(t.Context(), func(c call) bool { return c == "delete" || c == "look" })
			if err != nil {
				t.Error(err)
			}
			waited <- c
		}()
		for _, c := range []call{"send 1", "look", "delete"} {
			synctest.Wait()
			r.Add(c)
		}
		if got := <-waited; got != "delete" {
			t.Errorf("waited for %q", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Wait(ctx, func(c call) bool { return c == "never" }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
