package undo_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/gated/internal/tools"
	"arizuko/gated/internal/undo"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// called stores the call of a tool that a turn has made at a time.
func called(t *testing.T, s *store.Store, turn int64, at int64, tool, result string) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutToolCall(tx, turn, fmt.Sprint(at), tool, []byte(result), at) })
}

// redo does a turn again.
func redo(t *testing.T, s *store.Store, turn *msg.Turn, now int64) (answer string) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		u, _, refusal, err := undo.Ask(tx, undo.Request{Turn: turn.ID, Redo: true, By: "telegram:1", Operator: true}, now)
		if err != nil || refusal != "" {
			return fmt.Errorf("refused: %q, %w", refusal, err)
		}
		_, err = undo.Finish(tx, u, undo.Outside{Next: reminders.Next}, time.UTC, now)
		return err
	})
	return storetest.Value[string](t, s, `SELECT answer FROM undos ORDER BY id DESC LIMIT 1`)
}

// A new tool is taken back, or said to stay: neither is forgotten.
func TestFinish_EveryToolThatActs_IsKnown(t *testing.T) {
	t.Parallel()
	for _, tool := range tools.Registry() {
		if tool.Kind.ReadOnly || tool.Kind == tools.Lists {
			continue
		}
		s := storetest.Open(t)
		turn := answered(t, s, "telegram:-5")
		called(t, s, turn.ID, 150, tool.Name, `{}`)
		if answer := finish(t, s, turn, undo.Outside{}, 1000); strings.Contains(answer, "what it did with") {
			t.Errorf("%s has no place in takeBackCall:\n%s", tool.Name, answer)
		}
	}
}

// Reminders are as before the turn, and again as after it, unless something has happened with them since.
func TestFinish_Reminders(t *testing.T) {
	t.Parallel()
	const since, over = "that have fired or were changed since: 1", "whose time is over: 1"
	made := msg.Reminder{Folder: storetest.Folder, ChatJID: "telegram:-5", Kind: msg.ReminderText, Body: "old", DueAt: 50_000, NextSlot: 50_000,
		TimeZone: "UTC", Missed: msg.MissedOne, CreatedBy: "telegram:1", UpdatedBy: "telegram:1", CreatedAt: 1, UpdatedAt: 1}
	daily := made
	daily.DueAt, daily.Cron = 0, "0 12 * * *"
	move := func(body string, due, at int64) func(tx *store.Tx, r *msg.Reminder) error {
		return func(tx *store.Tx, r *msg.Reminder) error {
			moved := *r
			moved.Body, moved.DueAt, moved.NextSlot, moved.Cron, moved.UpdatedAt = body, due, due, "", at
			return rows.UpdateReminder(tx, &moved)
		}
	}
	end := func(by string, at int64) func(tx *store.Tx, r *msg.Reminder) error {
		return func(tx *store.Tx, r *msg.Reminder) error {
			return rows.EndReminder(tx, r.ID, msg.ReminderCancelled, by, "", at)
		}
	}
	fire := func(tx *store.Tx, r *msg.Reminder) error {
		return tx.Exec(`UPDATE reminders SET state = 'done', next_slot = NULL WHERE id = ?`, r.ID)
	}
	type steps = []func(tx *store.Tx, r *msg.Reminder) error
	for name, tt := range map[string]struct {
		reminder       msg.Reminder
		tools          []string // that the turn calls
		during, after  steps
		undone, redone string // body, state, next slot
		undo, redo     string // what the answers have
	}{
		"made": {made, []string{"create"}, nil, nil,
			"old cancelled 0", "old active 50000", "reminders restored: 1", "reminders restored: 1"},
		"made, then fired":                 {made, []string{"create"}, nil, steps{fire}, "old done 0", "old done 0", since, since},
		"made, then cancelled by a user":   {made, []string{"create"}, nil, steps{end("web:ada", 500)}, "old cancelled 0", "old cancelled 0", since, since},
		"made and cancelled":               {made, []string{"create", "cancel"}, steps{end("telegram:1", 151)}, nil, "old cancelled 0", "old cancelled 0", "Taken back", "Done again"},
		"made, moved":                      {made, []string{"create", "update"}, steps{move("new", 90_000, 151)}, nil, "new cancelled 0", "new active 90000", "reminders restored: 1", "reminders restored: 1"},
		"moved":                            {made, []string{"update"}, steps{move("new", 90_000, 150)}, nil, "old active 50000", "old active 50000", "reminders restored: 1", "changes of reminders: 1"},
		"moved, then changed by a user":    {made, []string{"update"}, steps{move("new", 90_000, 150)}, steps{move("mine", 95_000, 500)}, "mine active 95000", "mine active 95000", since, "changes of reminders: 1"},
		"moved, whose time has passed":     {made, []string{"update"}, steps{func(tx *store.Tx, r *msg.Reminder) error { r.DueAt = 900; return move("new", 90_000, 150)(tx, r) }}, nil, "new active 90000", "new active 90000", over, "changes of reminders: 1"},
		"cancelled":                        {made, []string{"cancel"}, steps{end("telegram:1", 150)}, nil, "old active 50000", "old cancelled 0", "reminders restored: 1", "reminders restored: 1"},
		"moved and cancelled":              {made, []string{"update", "cancel"}, steps{move("new", 90_000, 150), end("telegram:1", 151)}, nil, "old active 50000", "old cancelled 0", "reminders restored: 1", "reminders restored: 1"},
		"a daily one, which became one":    {daily, []string{"update"}, steps{move("new", 90_000, 150)}, nil, "old active 43200000", "old active 43200000", "reminders restored: 1", "changes of reminders: 1"},
		"a daily one, which was cancelled": {daily, []string{"cancel"}, steps{end("telegram:1", 150)}, nil, "old active 43200000", "old cancelled 0", "reminders restored: 1", "reminders restored: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			turn := answered(t, s, "telegram:-5")
			r := tt.reminder
			all := func(steps steps) {
				for _, step := range steps {
					storetest.Write(t, s, func(tx *store.Tx) error { return step(tx, &r) })
				}
			}
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutReminder(tx, &r) })
			was := r
			all(tt.during)
			was.DueAt = r.DueAt
			for i, tool := range tt.tools {
				result := fmt.Sprintf(`{"id":%d}`, r.ID)
				if tool != "create" {
					result = fmt.Sprintf(`{"id":%d,"replaced":%s}`, r.ID, storetest.Must(json.Marshal(was))(t))
				}
				called(t, s, turn.ID, 150+int64(i), "reminder_"+tool, result)
			}
			storetest.Write(t, s, func(tx *store.Tx) error {
				return rows.PutContextObject(tx, &msg.ContextObject{ChatJID: turn.ChatJID, Kind: msg.ContextReminder, ID: msg.ContextObjectID(msg.ContextReminder, r.ID),
					Label: "what is undone", CreatedAt: 150, LastTouchedAt: 150, ActiveUntil: 1 << 40}, 100, 150)
			})
			all(tt.after)
			const now = `SELECT body || ' ' || state || ' ' || ifnull(next_slot, 0) FROM reminders`
			contains(t, finish(t, s, turn, undo.Outside{Next: reminders.Next}, 1000), tt.undo)
			if got := storetest.Value[string](t, s, now); got != tt.undone {
				t.Errorf("after the undo: %s, want %s", got, tt.undone)
			}
			if strings.Contains(tt.undo, "reminders restored") && storetest.Value[int](t, s, `SELECT count(*) FROM context_objects`) != 0 {
				t.Error("a context object shows what was taken back")
			}
			contains(t, redo(t, s, turn, 2000), tt.redo)
			if got := storetest.Value[string](t, s, now); got != tt.redone {
				t.Errorf("after the redo: %s, want %s", got, tt.redone)
			}
			finish(t, s, turn, undo.Outside{Next: reminders.Next}, 3000)
			if got := storetest.Value[string](t, s, now); got != tt.undone {
				t.Errorf("after the second undo: %s, want %s", got, tt.undone)
			}
		})
	}
}

// Only windows are closed that the turn has opened.
func TestWindows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		claims bool
		reason msg.Reason // of the question
		tool   string
		at     int64 // when the window began
		want   []string
	}{
		"of a mention":                      {true, msg.ReasonRoute, "", 100, []string{"telegram:-5"}},
		"of a turn that claims nothing":     {false, msg.ReasonRoute, "", 100, nil},
		"of a message that it heard anyway": {true, msg.ReasonEngaged, "", 100, nil},
		"that was open before":              {true, msg.ReasonRoute, "", 50, nil},
		"opened since on the dashboard":     {true, msg.ReasonRoute, "", 500, nil},
		"of engage, elsewhere":              {false, msg.ReasonRoute, "engage", 150, []string{"telegram:-6"}},
		"of disengage":                      {false, msg.ReasonRoute, "disengage", 150, nil},
	} {
		s := storetest.Open(t)
		turn := answered(t, s, "telegram:-5")
		storetest.Write(t, s, func(tx *store.Tx) error {
			if err := tx.Exec(`UPDATE messages SET reason = ?, received_at = 100 WHERE id = ?`, tt.reason, turn.TriggerMessageID); err != nil {
				return err
			}
			for _, jid := range []string{"telegram:-5", "telegram:-6"} {
				if err := factrows.PutEngagement(tx, msg.Engagement{ChatJID: jid, Folder: turn.Folder, At: tt.at, Until: 9999}); err != nil {
					return err
				}
			}
			return nil
		})
		if tt.tool != "" {
			called(t, s, turn.ID, 150, tt.tool, `{"replaced":{"jid":"telegram:-6","topic":""}}`)
		}
		turn = storetest.Turn(t, s, turn.ID)
		turn.ClaimsEngagement = tt.claims
		var got []string
		for _, w := range storetest.Must(undo.Windows(t.Context(), s.Reader, turn, 1000))(t) {
			got = append(got, w.ChatJID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("a window %s: %v are closed, want %v", name, got, tt.want)
		}
	}
}

func TestFinish_OtherTools(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ tool, result, undo string }{
		"a window is ended":             {"disengage", `{"replaced":{"jid":"telegram:-5","topic":""}}`, "places where it listens no longer: 1"},
		"a fork is ended":               {"disengage", `{"replaced":{"jid":"telegram:-5","topic":"#fix"}}`, "forks opened again: 1"},
		"another session is reset":      {"reset_session", `{"ok":true,"replaced":{"groupFolder":"main/eng","topic":""}}`, "sessions of others that it reset: 1"},
		"a tool of a later version did": {"launch", `{}`, "what it did with launch"},
	} {
		s := storetest.Open(t)
		turn := answered(t, s, "telegram:-5")
		storetest.Write(t, s, func(tx *store.Tx) error {
			err := rows.PutFork(tx, &msg.Fork{ChatJID: turn.ChatJID, Folder: turn.Folder, Topic: "#fix", MessageID: turn.TriggerMessageID, CreatedAt: 50})
			if err != nil {
				return err
			}
			return tx.EndFork(turn.ChatJID, "#fix", 150)
		})
		called(t, s, turn.ID, 150, tt.tool, tt.result)
		if answer := finish(t, s, turn, undo.Outside{Closed: 1, Open: 2}, 1000); !strings.Contains(answer, tt.undo) ||
			!strings.Contains(answer, "only to mentions again: 1") || !strings.Contains(answer, "routd does not answer: 2") {
			t.Errorf("%s: %s", name, answer)
		}
		open := storetest.Value[int](t, s, `SELECT count(*) FROM forks WHERE ended_at IS NULL`)
		if (open == 1) != (name == "a fork is ended") {
			t.Errorf("%s: %d forks are open", name, open)
		}
		redo(t, s, turn, 2000)
		if storetest.Value[int](t, s, `SELECT count(*) FROM forks WHERE ended_at IS NULL`) != 0 {
			t.Errorf("%s: the redo leaves a fork open", name)
		}
	}
}

// What is about an undone question reaches no prompt: a change of it, or an answer to what the turn has asked a group.
func TestFinish_LateRows_ReachNoPrompt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	said := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:-5", PlatformID: "m1", Direction: msg.In, Content: "#deploy now", Timestamp: 50, ReceivedAt: 50})
	storetest.Decide(t, s, said.ID, store.Decision{Disposition: msg.Prefix, ReceivedAt: 50})
	derived := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:-5", Direction: msg.In, Content: "now", DerivedFrom: said.ID, Source: msg.SourcePrefix, Timestamp: 50, ReceivedAt: 50})
	turn := gatedtest.Queued(t, s, func(x *msg.Turn) {
		x.ChatJID, x.ThreadID, x.Place, x.TriggerMessageID = "telegram:-5", "", "", derived.ID
	})
	run := gatedtest.Begun(t, s, turn)
	work := gatedtest.Queued(t, s, func(x *msg.Turn) {
		x.Kind, x.Folder, x.ChatJID, x.RootTurnID = msg.Delegated, "main/eng", "group:main/eng", turn.ID
		x.TriggerMessageID = storetest.Stored(t, s, &msg.Message{ChatJID: "group:main/eng", Direction: msg.In, Content: "look", Source: msg.SourceDelegate,
			ForwardedFrom: &msg.ReturnAddress{Kind: msg.Escalation, TurnID: turn.ID, RootTurnID: turn.ID, Folder: turn.Folder, ChatJID: "telegram:-5"}}).ID
	})
	back := gatedtest.Queued(t, s, func(x *msg.Turn) {
		x.ChatJID, x.ThreadID, x.Place, x.RootTurnID, x.WaitsFor = "telegram:-5", "", "", turn.ID, msg.WaitsFiles
		x.TriggerMessageID = storetest.Stored(t, s, &msg.Message{ChatJID: "group:main", Direction: msg.In, Content: "seen", Source: msg.SourceDelegate,
			ForwardedFrom: &msg.ReturnAddress{Kind: msg.Answer, TurnID: work.ID, RootTurnID: turn.ID, Folder: turn.Folder, ChatJID: "telegram:-5"}}).ID
	})
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, turn, "done"), 200)
	note := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:-5", Direction: msg.In, Verb: msg.VerbEdit, TargetID: "m1", Content: "#deploy later"})
	storetest.Decide(t, s, note.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: turn.Folder})
	finish(t, s, turn, undo.Outside{}, 1000)
	for _, x := range []*msg.Turn{work, back} {
		if state := storetest.Turn(t, s, x.ID).State; state != msg.TurnCancelled {
			t.Errorf("turn %d is %s", x.ID, state)
		}
	}
	if m := storetest.Must(s.Message(t.Context(), note.ID))(t); m.Reason != msg.ReasonEditSuperseded {
		t.Errorf("the note waits for the next prompt: %+v", m)
	}
	for id, want := range map[int64]bool{said.ID: true, derived.ID: true, note.ID: false} {
		if got := storetest.Must(rows.TakenBack(t.Context(), s.Reader, id))(t); got != want {
			t.Errorf("row %d taken back: %t, want %t", id, got, want)
		}
	}
}
