package webchat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/msg"
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

func TestUndoable_TurnsOfAChat_AreTheLastOfEachTopicForTenMinutes(t *testing.T) {
	set := func(sql string) func(*testing.T, *fixture, int64) {
		return func(t *testing.T, r *fixture, turn int64) { t.Helper(); r.sql(t, sql, turn) }
	}
	for name, tt := range map[string]struct {
		minutes int64
		change  func(*testing.T, *fixture, int64)
		want    bool
	}{
		"just ended":           {0, nil, true},
		"nine minutes ago":     {9, nil, true},
		"ten minutes ago":      {10, nil, false},
		"it runs":              {0, set(`UPDATE turns SET state = 'running', run_id = 1, ended_at = NULL WHERE id = ?`), false},
		"never begun":          {0, set(`UPDATE turns SET state = 'cancelled', started_at = NULL WHERE id = ?`), false},
		"taken back":           {0, set(`UPDATE turns SET undone_at = 1 WHERE id = ?`), false},
		"being taken back":     {0, set(`INSERT INTO undos (turn_id, redo, rest, folder, topic, by, state, created_at) VALUES (?, 0, 0, 'main', '#a', 'x', 'open', 1)`), false},
		"refused before":       {0, set(`INSERT INTO undos (turn_id, redo, rest, folder, topic, by, state, created_at) VALUES (?, 0, 0, 'main', '#a', 'x', 'refused', 1)`), true},
		"answered with others": {0, set(`UPDATE turns SET answered_with = 77 WHERE id = ?`), false},
		"a newer one waits":    {0, func(t *testing.T, r *fixture, _ int64) { t.Helper(); queued(t, r, "#a", "#a") }, true},
		"a newer one runs": {0, func(t *testing.T, r *fixture, turn int64) {
			t.Helper()
			_, next := queued(t, r, "#b", "#a") // of another place, in the same session
			r.sql(t, `UPDATE turns SET started_at = 1 WHERE id = ?`, next)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			turn := ended(t, r, "#a", tt.minutes)
			if tt.change != nil {
				tt.change(t, r, turn)
			}
			got := get[struct{ Turns []undoable }](t, r, "/main/undo").Turns
			if (len(got) == 1) != tt.want || tt.want && (got[0].TurnID != turn || got[0].Topic != "#a" || got[0].LeftMS <= 0 || got[0].LeftMS > undoTimeout-tt.minutes*60_000) {
				t.Errorf("turn %d: %+v", turn, got)
			}
		})
	}
}

func TestUndo_ButtonPressed_IsStoredForItsTurnAlone(t *testing.T) {
	r := newFixture(t)
	old, turn := ended(t, r, "#a", 1), ended(t, r, "#a", 0)
	for path, want := range map[string]int{
		fmt.Sprintf("/main/undo {\"turn_id\":%d}", turn):  202,
		fmt.Sprintf("/main/undo {\"turn_id\":%d}", old):   409,
		fmt.Sprintf("/other/undo {\"turn_id\":%d}", turn): 409,
		`/main/undo {"turn_id":"x"}`:                      400,
		`/main/undo {}`:                                   409,
	} {
		path, body, _ := strings.Cut(path, " ")
		if status, answer := r.ask(t, "POST", path, body); status != want {
			t.Errorf("%s %s: %d %s", path, body, status, answer)
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
