package undo_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/undo"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const hour = int64(time.Hour / time.Millisecond)

// answered stores an answered turn of a chat.
func answered(t *testing.T, s *store.Store, chat string) *msg.Turn {
	t.Helper()
	turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.ThreadID, turn.Place = chat, "", "" })
	storetest.Write(t, s, func(tx *store.Tx) error {
		run := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: chat, StartedAt: 100, Runtime: "process"}
		if err := rows.StartRun(tx, run, turn.ID); err != nil {
			return err
		}
		_, err := rows.AnswerTurn(tx, rows.Reply{RunID: run.ID, TurnID: turn.ID, Text: "done", Final: true, SessionID: "s1",
			Sender: msg.AgentSender(turn.Folder)}, 200)
		return errors.Join(err, rows.CloseRun(tx, run.ID, 201))
	})
	return turn
}

// sent sets the state of all outbound rows, and when they were written.
func sent(t *testing.T, s *store.Store, at int64) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE messages SET out_state = 'sent', platform_id = 'p' || id, timestamp = ? WHERE direction = 'out'`, at)
	})
}

// finish asks for a turn to be taken back, and carries that out.
func finish(t *testing.T, s *store.Store, turn *msg.Turn, out undo.Outside, now int64) (answer string) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		u, _, refusal, err := undo.Ask(tx, undo.Request{Turn: turn.ID, By: "telegram:1", Operator: true}, now)
		if err != nil || refusal != "" {
			return fmt.Errorf("refused: %q, %w", refusal, err)
		}
		_, err = undo.Finish(tx, u, out, time.UTC, now)
		return err
	})
	found, err := s.Get(context.Background(), []any{&answer}, `SELECT answer FROM undos ORDER BY id DESC LIMIT 1`)
	if err != nil || !found {
		t.Fatalf("no answer: %v", err)
	}
	return answer
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
}

// Telegram lets bots delete their messages for two days.
func TestFinish_OldMessageOfTelegram_IsEdited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		chat string
		age  int64
		kind msg.Kind
	}{{"telegram:5", hour, msg.KindDelete}, {"telegram:5", 48 * hour, msg.KindEdit}, {"discord:5", 48 * hour, msg.KindDelete}} {
		s := storetest.Open(t)
		turn := answered(t, s, test.chat)
		sent(t, s, 1000)
		finish(t, s, turn, undo.Outside{}, 1000+test.age)
		var kind msg.Kind
		var target string
		_, err := s.Get(t.Context(), []any{&kind, &target}, `SELECT kind, ifnull(target_id, '') FROM messages WHERE source = 'notice'`)
		if err != nil || kind != test.kind || target != "" { // else it would be about one part
			t.Errorf("%s, %d h old: a row of kind %q about %q, %v; want %q", test.chat, test.age/hour, kind, target, err, test.kind)
		}
	}
}

// The session goes on from before the turn, if its agent can go back there. Each step is an answer by an agent, which
// names its session, or does not; a turn that is stopped; or a command.
func TestFinish_Session_IsTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ steps, want string }{
		{"a:s@1 a:s@2 /undo", "a=s@1"},
		{"a:s@1 a:s@2 a:s@3 /undo /undo /undo", ""},
		{"a:s@1 a:s@2 /undo /undo /redo /redo", "a=s@2"},
		// the name is always the same
		{"a:s a:s /undo", ""},
		{"a:s a:s a:s /undo /undo", ""},
		{"a:s a:s a:s /undo /undo /redo /redo", "a=s"},
		{"a: a: /undo", ""},
		{"a:s@1 a:s@1 /undo", ""},
		// without an answer
		{"a:s@1 a:stopped /undo", "a=s@1!"},
		{"a:s@1 a:stopped /undo /redo", "a=s@1"},
		{"a:s@1 a:stopped a:stopped /undo /undo", "a=s@1!"},
		{"a:s@1 a:stopped /undo a:s@2 /undo", "a=s@1!"},
		{"a:s a:stopped /undo", ""},
		{"a:stopped /undo", ""},
		// another agent
		{"a:s b:x /undo", "a=s"},
		{"a:s b:x /undo /undo", ""},
		{"a:s b:x /undo /undo /redo", "a=s"},
		{"a:s@1 b:x /undo /redo", "a=s@1 b=x"},
		{"a:s@1 b:x a:s@2 /undo", "a=s@1 b=x"},
		// reset since, or before
		{"a:s@1 a:s@2 /new /undo", ""},
		{"a:s@1 a:s@2 /undo /new /redo", ""},
		{"a:s@1 /undo /new /redo", ""},
		{"a:s@1 /new a:x@1 /undo", ""},
		{"a:s@1 /new a:x@1 /undo /undo /redo /redo", "a=x@1"},
	} {
		t.Run(test.steps, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			for at, step := range strings.Fields(test.steps) {
				sessionStep(t, s, step, int64(at+1)*100)
			}
			got := storetest.Value[string](t, s, `SELECT ifnull(group_concat(agent || '=' || session_id, ' '), '') FROM (SELECT agent, session_id FROM sessions
				UNION ALL SELECT agent, session_id FROM kept_sessions ORDER BY agent) s`)
			if got != test.want {
				t.Errorf("session %q, want %q", got, test.want)
			}
		})
	}
}

func sessionStep(t *testing.T, s *store.Store, step string, now int64) {
	t.Helper()
	q := undo.Request{Folder: storetest.Folder, ChatJID: "telegram:5", By: "telegram:1", Operator: true, Redo: step == "/redo"}
	agent, session, answers := strings.Cut(step, ":")
	var turn *msg.Turn
	if answers {
		turn = gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.ThreadID, turn.Place = q.ChatJID, "", "" })
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		if step == "/new" {
			_, err := rows.ResetSession(tx, q.Folder, "", now)
			return err
		}
		if !answers {
			u, _, refusal, err := undo.Ask(tx, q, now)
			if err != nil || refusal != "" {
				return fmt.Errorf("%s is refused: %q, %w", step, refusal, err)
			}
			_, err = undo.Finish(tx, u, undo.Outside{}, time.UTC, now)
			return err
		}
		run := &msg.Run{Folder: q.Folder, ChatJID: q.ChatJID, StartedAt: now, Runtime: "process", Agent: agent}
		err := rows.StartRun(tx, run, turn.ID)
		if err == nil && session == "stopped" {
			err = rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, now)
		} else if err == nil {
			_, err = rows.AnswerTurn(tx, rows.Reply{RunID: run.ID, Agent: agent, TurnID: turn.ID, Final: true, SessionID: session}, now)
		}
		if err != nil {
			return err
		}
		return rows.EndRun(tx, run.ID, "", now)
	})
}

// What was not sent yet is withdrawn, and a redo sends it.
func TestFinish_QueuedMessage_IsWithdrawn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := answered(t, s, "telegram:5")
	finish(t, s, turn, undo.Outside{}, 1000)
	storetest.Write(t, s, func(tx *store.Tx) error {
		u, _, _, err := undo.Ask(tx, undo.Request{Turn: turn.ID, Redo: true, By: "telegram:1", Operator: true}, 1001)
		if err != nil {
			return err
		}
		_, err = undo.Finish(tx, u, undo.Outside{}, time.UTC, 1001)
		return err
	})
	var states string
	_, err := s.Get(t.Context(), []any{&states}, `SELECT group_concat(out_state || ' ' || content, '; ') FROM
		(SELECT out_state, content FROM messages WHERE direction = 'out' AND turn_id = ? ORDER BY id) m`, turn.ID)
	if err != nil || states != "cancelled done; queued done" {
		t.Errorf("rows %q, %v", states, err)
	}
}

func TestFinish_Answer_SaysWhatStays(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := answered(t, s, "telegram:-5")
	sent(t, s, 1000)
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i, method := range []string{"GET", "POST", "DELETE"} {
			r := &egress.Receipt{At: int64(i) * hour, EndedAt: int64(i)*hour + 1, TurnID: turn.ID, Folder: turn.Folder, Method: method, Host: "api.example.com",
				Port: 443, Path: "/x_y", State: egress.Sent}
			if method == "DELETE" {
				r.State = egress.Refused
			}
			if err := egressrows.PutReceipt(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("f%d", i)
	}
	answer := finish(t, s, turn, undo.Outside{Files: undo.Files{Restored: 500, Paths: append([]string{"a*.txt", strings.Repeat("d/", 999) + "e.txt"}, many...), Changed: many,
		NotCovered: []string{"big.bin (too big)"}}}, 2000)
	contains(t, answer, `files restored: 500 (a\*.txt, …`, "/e.txt, f0", "f7 and 490 more)", "f9 and 2 more", "big.bin (too big)", "what readers have seen already",
		`the request POST api.example.com/x\_y, at 01:00:00`, "requests that read something: 1")
	if strings.Contains(answer, "DELETE") {
		t.Errorf("%q has a request that was not sent", answer)
	}
}

// The press of a button is answered by the adapter, to its user alone.
func TestAsk_OfAnotherUser_IsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := answered(t, s, "telegram:5")
	for press, want := range map[int64]string{0: "Only ", turn.ID: ""} {
		storetest.Write(t, s, func(tx *store.Tx) error {
			u, _, refusal, err := undo.Ask(tx, undo.Request{Turn: press, Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, By: "x"}, 1001)
			if u != nil || !strings.HasPrefix(refusal, want) || (refusal == "") != (want == "") {
				t.Errorf("turn %d: %+v, %q", press, u, refusal)
			}
			return err
		})
	}
}

func TestFinish_NothingRestored_NothingIsChanged(t *testing.T) {
	t.Parallel()
	for _, out := range []undo.Outside{{Problem: "the disk is full"}, {Files: undo.Files{Refused: true, Changed: []string{"a"}}}} {
		s := storetest.Open(t)
		turn := answered(t, s, "telegram:5")
		contains(t, finish(t, s, turn, out, 1000), "Nothing is changed")
		if now, err := s.Turn(t.Context(), turn.ID); err != nil || now.UndoneAt != 0 {
			t.Errorf("the turn is %+v, %v", now, err)
		}
		storetest.Write(t, s, func(tx *store.Tx) error { // another one may begin
			_, _, refusal, err := undo.Ask(tx, undo.Request{Turn: turn.ID, By: "x", Operator: true}, 1001)
			if refusal != "" {
				t.Error(refusal)
			}
			return err
		})
	}
}

// cancelled stores a turn that was stopped while it ran, after the half of an answer.
func cancelled(t *testing.T, s *store.Store) *msg.Turn {
	t.Helper()
	turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.ThreadID, turn.Place = "telegram:-5", "", "" })
	storetest.Write(t, s, func(tx *store.Tx) error {
		run := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, StartedAt: 200, Runtime: "process"}
		if err := rows.StartRun(tx, run, turn.ID); err != nil {
			return err
		}
		if err := rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 300); err != nil {
			return err
		}
		_, _, err := tx.PutMessage(&msg.Message{ChatJID: turn.ChatJID, Direction: msg.Out, IsBot: true, Sender: msg.AgentSender(turn.Folder),
			Content: "half", TurnID: turn.ID, Timestamp: 300, ReceivedAt: 300, Source: msg.SourceNotice, OutState: msg.OutStateOf(turn.ChatJID)})
		return err
	})
	return turn
}

func TestFinish_StoppedTurn_HalfAnswerIsDeleted(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := cancelled(t, s)
	sent(t, s, 300)
	contains(t, finish(t, s, turn, undo.Outside{}, 1000), "messages being deleted: 1")
}

// A turn that is being taken back is not run again meanwhile.
func TestRevive_UndoOpen_Refused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := cancelled(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		_, _, _, err := undo.Ask(tx, undo.Request{Turn: turn.ID, By: "x", Operator: true}, 400)
		if err == nil && !errors.Is(rows.ReviveTurn(tx, turn.ID), store.ErrStale) {
			t.Error("the turn is queued again")
		}
		return err
	})
}

// Users take back what they have asked for, and those whom the turn's group lets operate it, which may be another group
// than the chat's.
func TestAsk_Users(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	note := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:-5", PlatformID: "n", Direction: msg.In, Sender: "telegram:666",
		Verb: msg.VerbEdit, Content: "a remark", TargetID: "m0", Timestamp: 50, ReceivedAt: 50})
	storetest.Decide(t, s, note.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: storetest.Folder, ReceivedAt: 50})
	turn := answered(t, s, "telegram:-5")
	asked, err := rows.TurnQuestions(t.Context(), s.Reader, turn.ID)
	if err != nil || len(asked) != 1 {
		t.Fatalf("%+v, %v", asked, err)
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: turn.Folder, Config: []byte(`{"roles":{"operate":["telegram:42"]}}`)})
		return err
	})
	for by, want := range map[string]bool{asked[0].Sender: true, "telegram:42": true, "telegram:666": false, "telegram:7": false} {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			_, _, refusal, err := undo.Ask(tx, undo.Request{Folder: "another", ChatJID: turn.ChatJID, By: by}, 400)
			if (refusal == "") != want {
				t.Errorf("%s: %q", by, refusal)
			}
			return cmp.Or(err, errors.New("rolled back"))
		})
		if err == nil || err.Error() != "rolled back" {
			t.Error(err)
		}
	}
}

// A page names turns that may be over.
func TestAsk_NamedTurn_RefusalIsTrue(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turns := []*msg.Turn{answered(t, s, "telegram:5"), answered(t, s, "telegram:5")}
	finish(t, s, turns[1], undo.Outside{}, 1000)
	turns = append(turns, answered(t, s, "telegram:5"))
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`UPDATE turns SET started_at = 1500 WHERE id = ?`, turns[2].ID)
	})
	finish(t, s, turns[2], undo.Outside{}, 2000)
	for redo, want := range map[bool]string{false: "is taken back already", true: "A newer turn"} {
		storetest.Write(t, s, func(tx *store.Tx) error {
			_, _, refusal, err := undo.Ask(tx, undo.Request{Turn: turns[1].ID, Redo: redo, By: "x", Operator: true}, 3000)
			contains(t, refusal, want)
			return err
		})
	}
}
