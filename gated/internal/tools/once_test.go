package tools

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// retry begins the next attempt at the fixture's turn, as a gated does that was killed:
// with a new run, of which no call is known.
func (f *fixture) retry() {
	f.t.Helper()
	f.access.Close()
	f.write(func(tx *store.Tx) error {
		if err := rows.RequeueTurn(tx, f.turn.ID, rows.Requeue{}); err != nil {
			return err
		}
		return rows.EndRun(tx, f.access.run.ID, "", 2)
	})
	f.access = f.begin(msg.Run{Folder: f.turn.Folder, ChatJID: f.turn.ChatJID}, f.turn.ID)
}

func TestOnce_RetriedTurn_ReturnsFirstResultsInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	calls := []string{`{"text":"one"}`, `{"text":"two"}`, `{"text":"one"}`}
	var first []string
	for _, arguments := range calls {
		first = append(first, f.works("send_message", arguments))
	}
	f.retry()
	for i, arguments := range calls {
		if got := f.works("send_message", arguments); got != first[i] {
			t.Errorf("call %d: %s, first %s", i, got, first[i])
		}
	}
	if sent := f.outbound(); len(sent) != 3 {
		t.Fatalf("%d messages, want 3", len(sent))
	}
	if more := f.works("send_message", `{"text":"one"}`); more == first[0] || more == first[2] {
		t.Errorf("a third call returned an earlier result: %s", more)
	}
}

// A commit whose reply was lost has the effect and the result, one that was not
// reached has neither: these are all instants at which gated can be killed.
func TestOnce_KilledAroundCommit_NeitherDoublesNorLoses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.caller("send_message")
	in := sendMessageIn{Text: "x"}
	put := func(tx *store.Tx) (messageOut, error) {
		m, err := c.outbound()
		if err != nil {
			return messageOut{}, err
		}
		id, _, err := tx.PutMessage(m)
		return messageOut{MessageID: id}, err
	}
	_, err := once(t.Context(), c, in, func(tx *store.Tx) (messageOut, error) {
		if _, err := put(tx); err != nil {
			return messageOut{}, err
		}
		return messageOut{}, errors.New("killed before the commit")
	})
	if err == nil || len(f.outbound()) != 0 {
		t.Fatalf("%v, %d messages", err, len(f.outbound()))
	}
	f.retry()
	c = f.caller("send_message")
	committed, err := once(t.Context(), c, in, put)
	if err != nil || len(f.outbound()) != 1 {
		t.Fatalf("%v, %d messages", err, len(f.outbound()))
	}
	f.retry() // the reply of the commit was lost
	c = f.caller("send_message")
	again, err := once(t.Context(), c, in, put)
	if err != nil || again != committed || len(f.outbound()) != 1 {
		t.Errorf("%v: %v, first %v, %d messages", err, again, committed, len(f.outbound()))
	}
}

// A call that failed has no result: it must not shift those of later calls.
func TestOnce_FailedCall_IsNotCounted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	fails := true
	act := func() (string, error) {
		return once(t.Context(), f.caller("act"), 1, func(*store.Tx) (string, error) {
			if fails {
				return "", errors.New("no")
			}
			return "done", nil
		})
	}
	if _, err := act(); err == nil {
		t.Fatal("no error")
	}
	fails = false
	if out, err := act(); err != nil || out != "done" {
		t.Fatal(out, err)
	}
	f.retry()
	fails = true // it is not called
	if out, err := act(); err != nil || out != "done" {
		t.Error(out, err)
	}
}

func TestOnce_EqualConcurrentCalls_EachActOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const n = 20
	for attempt := range 2 {
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if text, isError := f.call("send_message", `{"text":"same"}`); isError {
					t.Errorf("attempt %d: %s", attempt, text)
				}
			})
		}
		all.Wait()
		if sent := f.outbound(); len(sent) != n {
			t.Fatalf("attempt %d: %d messages, want %d", attempt, len(sent), n)
		}
		f.retry()
	}
}

func TestOnce_TurnOrRunEndedMeanwhile_ActsNotAtAll(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*fixture){
		"the turn is cancelled": (*fixture).cancelTurn, "the run ends": func(f *fixture) { f.access.Close() },
		"the turn is gone": func(f *fixture) { f.exec(`DELETE FROM turns WHERE id = ?`, f.turn.ID) },
	} {
		f := newFixture(t)
		c := f.caller("send_message")
		for range 2 { // while the call prepares, and before
			_, err := onceAfter(t.Context(), c, 1, func() error { end(f); return nil }, func(*store.Tx) (int, error) {
				t.Errorf("%s: it acts", name)
				return 0, nil
			})
			if !errors.Is(err, errEnded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := f.services.caller(t.Context(), f.access, "send_message"); !errors.Is(err, errEnded) {
			t.Errorf("%s: the next call: %v", name, err)
		}
	}
}

func TestOnce_LoopOfTheModel_Ends(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.caller("act")
	for i := range maxActing {
		if _, err := once(t.Context(), c, i, func(*store.Tx) (int, error) { return i, nil }); err != nil {
			t.Fatal(i, err)
		}
	}
	_, err := once(t.Context(), c, maxActing, func(*store.Tx) (int, error) { return 0, nil })
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxActing)) {
		t.Error(err)
	}
	f.retry()
	if out, err := once(t.Context(), f.caller("act"), 7, func(*store.Tx) (int, error) { return 0, nil }); err != nil || out != 7 {
		t.Errorf("a stored result: %d, %v", out, err)
	}
}

func TestHashCall_DependsOnToolAndArguments(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, call := range []struct {
		tool string
		in   any
	}{{"a", sendMessageIn{Text: "x"}}, {"b", sendMessageIn{Text: "x"}}, {"a", sendMessageIn{Text: "y"}}, {"a", sendMessageIn{Topic: new("x")}}} {
		hash, err := hashCall(call.tool, call.in)
		if err != nil || seen[hash] {
			t.Errorf("%v: %s, %v", call, hash, err)
		}
		seen[hash] = true
	}
}
