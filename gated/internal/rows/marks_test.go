package rows_test

import (
	"errors"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// marks are the reactions on messages that wait, as "target content state".
func marks(t *testing.T, s *store.Store) string {
	t.Helper()
	return storetest.Value[string](t, s, `SELECT ifnull(group_concat(target_id || ' ' || content || ' ' || out_state, '; '), '') FROM
		(SELECT * FROM messages WHERE source = 'waiting' ORDER BY id) w`)
}

func mark(t *testing.T, s *store.Store, turn *msg.Turn) (marked bool) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		marked, err = rows.MarkWaiting(tx, turn.ID, 500)
		return err
	})
	return marked
}

// waitingTurn is a queued turn for a post of a platform.
func waitingTurn(t *testing.T, s *store.Store, jid string, change ...func(*msg.Message)) *msg.Turn {
	t.Helper()
	row := &msg.Message{ChatJID: jid, Direction: msg.In, Content: "hello", Sender: "x:7", PlatformID: "41", Timestamp: 1, ReceivedAt: 2}
	for _, f := range change {
		f(row)
	}
	storetest.Stored(t, s, row)
	return gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.TriggerMessageID = jid, row.ID })
}

func sent(t *testing.T, s *store.Store) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET out_state = 'sent' WHERE source = 'waiting'`)
	})
}

func TestMarkWaiting_TurnEnds_MarkIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent bool
		end  func(*store.Tx, *msg.Turn) error
		want string
	}{
		"answered": {true, func(tx *store.Tx, turn *msg.Turn) error {
			return rows.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonAnswered, "", 600)
		}, "41 👀 sent; 41 -👀 queued"},
		"cancelled": {true, func(tx *store.Tx, turn *msg.Turn) error {
			return rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 600)
		}, "41 👀 sent; 41 -👀 queued"},
		"failed without a notice": {true, func(tx *store.Tx, turn *msg.Turn) error {
			if err := rows.FinishTurn(tx, turn, msg.TurnFailed, msg.ReasonAlreadyTold, "", 600); err != nil {
				return err
			}
			return rows.MarkUnanswered(tx, turn, 600)
		}, "41 👀 sent; 41 -👀 queued; 41 🤷 queued"},
		"before it was sent": {false, func(tx *store.Tx, turn *msg.Turn) error {
			return rows.FinishTurn(tx, turn, msg.TurnFailed, msg.ReasonAgentError, "", 600)
		}, "41 👀 cancelled"},
		"begun": {true, func(tx *store.Tx, turn *msg.Turn) error { return tx.Unmark(turn.ID, 600) }, "41 👀 sent; 41 -👀 queued"},
		"begun and ended": {true, func(tx *store.Tx, turn *msg.Turn) error {
			if err := tx.Unmark(turn.ID, 600); err != nil {
				return err
			}
			return rows.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonAnswered, "", 600)
		}, "41 👀 sent; 41 -👀 queued"},
		"requeued": {true, func(tx *store.Tx, turn *msg.Turn) error { return rows.RequeueTurn(tx, turn.ID, rows.Requeue{}) }, "41 👀 sent"},
		"the agent has reacted": {true, func(tx *store.Tx, turn *msg.Turn) error {
			_, _, err := tx.PutMessage(&msg.Message{ChatJID: turn.ChatJID, Direction: msg.Out, Kind: msg.KindReaction, Content: "👍", TargetID: "41",
				TurnID: turn.ID, Source: msg.SourceTool, OutState: msg.OutQueued, Timestamp: 1, ReceivedAt: 1})
			if err != nil {
				return err
			}
			return tx.Unmark(turn.ID, 600)
		}, "41 👀 sent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			turn := waitingTurn(t, s, storetest.Chat)
			if !mark(t, s, turn) || mark(t, s, turn) {
				t.Error("marked other than once")
			}
			if c.sent {
				sent(t, s)
			}
			storetest.Write(t, s, func(tx *store.Tx) error { return c.end(tx, turn) })
			if got := marks(t, s); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestMarkUnanswered_Retried_MarkIsTakenAway(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := waitingTurn(t, s, storetest.Chat)
	fail := func(tx *store.Tx) error {
		if err := rows.FinishTurn(tx, turn, msg.TurnFailed, msg.ReasonAlreadyTold, "", 600); err != nil {
			return err
		}
		return rows.MarkUnanswered(tx, turn, 600)
	}
	storetest.Write(t, s, fail)
	sent(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ReviveTurn(tx, turn.ID) })
	if mark(t, s, turn) {
		t.Error("a message has two marks")
	}
	storetest.Write(t, s, fail) // once more
	sent(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ReviveTurn(tx, turn.ID) })
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonAnswered, "", 700)
	})
	if got, want := marks(t, s), "41 🤷 sent; 41 -🤷 sent; 41 🤷 sent; 41 -🤷 queued"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMarkWaiting_WhatCannotBeMarked_IsLeftAlone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	oldest := waitingTurn(t, s, "telegram:1")
	run := gatedtest.Begun(t, s, oldest)
	worked := gatedtest.Piped(t, s, run)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO turn_progress (turn_id, state, updated_at) VALUES (?, 'running', 1)`, worked.ID)
	})
	for name, turn := range map[string]*msg.Turn{
		"the turn at work":          oldest,
		"one that the agent has":    worked,
		"a platform of its own":     waitingTurn(t, s, "matrix:1"),
		"a join":                    waitingTurn(t, s, "telegram:2", func(m *msg.Message) { m.Verb = "join" }),
		"a row without a post":      waitingTurn(t, s, "telegram:3", func(m *msg.Message) { m.PlatformID = "" }),
		"a turn that was not asked": gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Kind = msg.Broadcast }),
	} {
		if mark(t, s, turn) {
			t.Errorf("%s was marked", name)
		}
	}
	if !mark(t, s, waitingTurn(t, s, "web:acme")) {
		t.Error("a message of a web chat was not marked")
	}
	if !mark(t, s, waitingTurn(t, s, "slack+work:C1", func(m *msg.Message) { m.Verb = msg.VerbMention })) {
		t.Error("a mention on another account was not marked")
	}
}

// Users delete messages that get a mark.
func TestMark_NotDelivered_IsNoLostMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	mark(t, s, waitingTurn(t, s, storetest.Chat))
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET out_state = 'failed' WHERE source = 'waiting'`)
	})
	lost, err := rows.LostRows(t.Context(), s.Reader, 0, "", 10)
	undelivered, err2 := factrows.Undelivered(t.Context(), s.Reader, 0)
	if err := errors.Join(err, err2); err != nil || len(lost)+len(undelivered) > 0 {
		t.Errorf("%v, lost %+v, undelivered %+v", err, lost, undelivered)
	}
}

func TestMarkCancelled_OtherSenders_SeeIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := waitingTurn(t, s, storetest.Chat)
	other := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: "x:8", PlatformID: "42", Timestamp: 1, ReceivedAt: 2})
	storetest.Decide(t, s, other.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: turn.ID})
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 600); err != nil {
			return err
		}
		return tx.MarkCancelled(turn, "x:7", 600)
	})
	sent(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ReviveTurn(tx, turn.ID) })
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonAnswered, "", 700)
	})
	if got, want := marks(t, s), "42 🤷 sent; 42 -🤷 queued"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A turn that is retried waits again.
func TestMarkWaiting_MarkWasTakenAway_IsMarkedAgain(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := waitingTurn(t, s, storetest.Chat)
	first := mark(t, s, turn)
	sent(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Unmark(turn.ID, 600) })
	if again := mark(t, s, turn); !first || !again {
		t.Errorf("marked %t, then %t", first, again)
	}
}
