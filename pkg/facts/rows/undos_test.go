package rows_test

import (
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func exec(t *testing.T, s *store.Store, query string, args ...any) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(query, args...) })
}

func TestUndos_TurnAnsweredWithAnother_HasThoseOfThat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	command := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: "telegram:1", SenderName: "Ann", Content: "/undo", Timestamp: 1, ReceivedAt: 1})
	const query = `INSERT INTO undos (turn_id, redo, rest, folder, topic, message_id, by, state, answer, created_at, ended_at) VALUES (?, ?, 0, 'main', '', ?, ?, ?, ?, 5, ?)`
	exec(t, s, query, turn.ID, 0, command.ID, "telegram:1", "refused", rows.UndoneFilesChanged+"a.txt.", 6)
	exec(t, s, query, turn.ID, 1, nil, "web:operator", "open", "", nil)
	exec(t, s, query, turn.ID+1, 0, nil, "web:operator", "done", "", 7)
	for _, of := range []*msg.Turn{turn, {ID: turn.ID + 9, AnsweredWith: turn.ID}} {
		got := storetest.Must(rows.Undos(t.Context(), s.Reader, of))(t)
		if len(got) != 2 || got[0].Name != "Ann" || !got[0].FilesChanged() || got[0].EndedAt != 6 || got[1].State != rows.UndoOpen || !got[1].Redo || got[1].FilesChanged() {
			t.Errorf("of turn %d: %+v", of.ID, got)
		}
	}
}

func TestTurnEnds_UndoneAndFailed_OfTheirMessages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	all := []*msg.Message{{ID: 11, TurnID: turn.ID, Direction: msg.In}, {ID: 12}, {ID: 13, TurnID: turn.ID + 9}, {ID: 14, TurnID: turn.ID, Direction: msg.Out}}
	for _, step := range []struct{ change, asked, answer string }{
		{"", "", ""}, {"state = 'failed', reason = 'agent_error', ended_at = 5", "failed", ""}, {"undone_at = 9", rows.TakenBack, rows.TakenBack},
	} {
		if step.change != "" {
			exec(t, s, `UPDATE turns SET `+step.change+` WHERE id = ?`, turn.ID)
		}
		if got := storetest.Must(rows.TurnEnds(t.Context(), s.Reader, all))(t); got[11] != step.asked || got[12] != "" || got[13] != "" || got[14] != step.answer {
			t.Errorf("%s: %v", step.change, got)
		}
	}
	if got := storetest.Must(rows.TurnEnds(t.Context(), s.Reader, all[1:2]))(t); got != nil {
		t.Errorf("of messages without a turn: %v", got)
	}
}
