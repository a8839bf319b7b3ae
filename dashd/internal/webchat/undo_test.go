package webchat

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// ended stores a turn of a place that has ended some minutes ago, and returns its id.
func ended(t *testing.T, r *fixture, place string, minutes int64) int64 {
	t.Helper()
	_, turn := queued(t, r, place, place)
	at := time.Now().UnixMilli() - minutes*60_000
	r.sql(t, `UPDATE turns SET state = 'done', started_at = ?, ended_at = ? WHERE id = ?`, at-1, at, turn)
	r.sql(t, `UPDATE messages SET turn_id = ?, disposition = 'routed', reason = 'route', routed_to = 'main', decided_at = 1, decision_seq = ? WHERE id = (SELECT trigger_message_id FROM turns WHERE id = ?)`, turn, turn, turn)
	return turn
}

// answerOf stores an answer of a turn, and returns its row.
func answerOf(t *testing.T, r *fixture, turn int64, text string) int64 {
	t.Helper()
	m := &msg.Message{ChatJID: "web:main", Topic: "#a", Direction: msg.Out, Source: msg.SourceAgent, TurnID: turn, Content: text, OutState: msg.OutSent, Timestamp: 1, ReceivedAt: 1}
	r.write(t, func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m.ID
}

// The press counts in the same cases, but for those that gated refuses with a reason.
func TestHistory_LastAnswerOfATurn_HasUndoForTenMinutes(t *testing.T) {
	for name, tt := range map[string]struct {
		minutes int64
		change  string // of the turn
		want    bool
		press   int
	}{
		"just ended":           {0, "", true, 202},
		"nine minutes ago":     {9, "", true, 202},
		"ten minutes ago":      {10, "", false, 409},
		"it runs":              {0, `state = 'running', run_id = 1, ended_at = NULL`, false, 409},
		"stopped":              {0, `state = 'cancelled'`, false, 409},
		"failed":               {0, `state = 'failed'`, false, 409},
		"taken back":           {0, `undone_at = 1`, false, 409},
		"answered with others": {0, `answered_with = 77`, false, 202},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			turn := ended(t, r, "#a", tt.minutes)
			answerOf(t, r, turn, "half")
			last := answerOf(t, r, turn, "all")
			if tt.change != "" {
				r.sql(t, `UPDATE turns SET `+tt.change+` WHERE id = ?`, turn)
			}
			for _, m := range get[struct{ Messages []message }](t, r, "/main/messages").Messages {
				if has := m.UndoMS > 0 && m.UndoMS <= msg.UndoTime.Milliseconds()-tt.minutes*60_000; has != (tt.want && m.ID == last) {
					t.Errorf("row %d has a button for %d ms", m.ID, m.UndoMS)
				}
			}
			if status, answer := r.ask(t, "POST", "/main/undo", fmt.Sprintf(`{"turn_id":%d}`, turn)); status != tt.press {
				t.Errorf("the press: %d %s", status, answer)
			}
		})
	}
}

func TestUndo_ButtonPressed_IsStoredForItsTurnAlone(t *testing.T) {
	r := newFixture(t)
	turn := ended(t, r, "#a", 0)
	for _, tt := range []struct {
		path, body string
		want       int
	}{
		{"/main/undo", fmt.Sprintf(`{"turn_id":%d}`, turn), 202},
		{"/other/undo", fmt.Sprintf(`{"turn_id":%d}`, turn), 409},
		{"/main/undo", `{"turn_id":"x"}`, 400},
		{"/main/undo", `{}`, 409},
	} {
		if status, answer := r.ask(t, "POST", tt.path, tt.body); status != tt.want {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, status, answer)
		}
	}
	rows, err := gatedtest.Undecided(t.Context(), r.st.Reader, JID("main"), 0, 10)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	if m, want := rows[0], (msg.Press{Undo: turn, Text: "Undo"}).JSON(); m.Verb != msg.VerbAnswer || m.Content != want || m.Topic != "#a" || m.Sender != msg.WebOperator {
		t.Errorf("stored %+v", m)
	}
}

func TestHistory_TurnTakenBack_ItsQuestionIsMarked(t *testing.T) {
	r := newFixture(t)
	ended(t, r, "#a", 1)
	r.sql(t, `UPDATE turns SET undone_at = ? WHERE id = ?`, 5, ended(t, r, "#a", 0))
	all := get[struct{ Messages []message }](t, r, "/main/messages").Messages
	if len(all) != 2 || all[0].Undone || !all[1].Undone {
		t.Errorf("%+v", all)
	}
}

// A turn that failed like another one has no notice: its message says it.
func TestHistory_TurnFailedAgain_ItsQuestionIsMarked(t *testing.T) {
	r := newFixture(t)
	id := r.post(t, map[string]string{"text": "mine"})
	r.sql(t, `UPDATE messages SET platform_id = 'm', turn_id = ? WHERE id = ?`, ended(t, r, "#a", 1), id)
	failed := func() string {
		all := get[struct{ Messages []message }](t, r, "/main/messages").Messages
		return all[slices.IndexFunc(all, func(m message) bool { return m.ID == id })].Failed
	}
	r.sql(t, `UPDATE turns SET state = 'failed', reason = 'already_told'`)
	if got := failed(); got != "" {
		t.Errorf("%q before it is marked", got)
	}
	r.sql(t, `UPDATE messages SET kind = 'reaction', source = 'waiting', content = ?, target_id = 'm' WHERE id = ?`, msg.MarkUnanswered,
		r.put(t, row{folder: "main", direction: "out", state: msg.OutSent}))
	if got := failed(); got != msg.ReasonAlreadyTold.Words() {
		t.Errorf("marked as %q", got)
	}
}
