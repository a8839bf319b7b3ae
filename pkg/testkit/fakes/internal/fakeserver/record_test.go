package fakeserver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// call is what a caller of some platform does: "send …" makes messages, "look" does nothing.
type call string

func (c *call) did() bool   { return *c != "look" }
func (c *call) sends() bool { return strings.HasPrefix(string(*c), "send") }

func newRecord() *fakeserver.Record[call] { return fakeserver.NewRecord((*call).did, (*call).sends) }

func TestRecord(t *testing.T) {
	r := newRecord()
	all := []call{"look", "send 1", "delete", "send 2"}
	for _, c := range all {
		r.Note(c)
	}
	if got := r.Calls(); !slices.Equal(got, all) {
		t.Errorf("calls %q", got)
	}
	if got := r.Sent(); !slices.Equal(got, all[1:]) {
		t.Errorf("sent %q", got)
	}
	r.Calls()[0] = "another"
	if got := r.Calls(); !slices.Equal(got, all) {
		t.Errorf("somebody changed the record to %q", got)
	}
}

func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecord()
		r.Note("send 1")
		waited := make(chan call)
		go func() {
			c, err := r.Wait(t.Context(), func(c call) bool { return c == "delete" || c == "look" })
			if err != nil {
				t.Error(err)
			}
			waited <- c
		}()
		sent := make(chan []call)
		go func() {
			all, err := r.WaitSent(t.Context(), 2)
			if err != nil {
				t.Error(err)
			}
			sent <- all
		}()
		for _, c := range []call{"look", "delete", "send 2"} {
			synctest.Wait()
			select {
			case all := <-sent:
				t.Fatalf("%q are not two", all)
			default:
			}
			r.Note(c)
			if c == "delete" {
				if got := <-waited; got != "delete" {
					t.Errorf("waited for %q", got)
				}
			}
		}
		if all := <-sent; !slices.Equal(all, []call{"send 1", "send 2"}) {
			t.Errorf("sent %q", all)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.WaitSent(ctx, 3); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// Who asks for the news before looking misses none, and nobody is woken without any.
func TestNews(t *testing.T) {
	var n fakeserver.News
	n.Happened()
	changed := n.Changed()
	if n.Changed() != changed {
		t.Error("two who wait at once wait for different things")
	}
	select {
	case <-changed:
		t.Error("old news")
	default:
	}
	n.Happened()
	<-changed
}
