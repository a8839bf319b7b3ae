package rows

import (
	"encoding/json"
	"errors"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPreviewMode_IsOfGroupElseOfChat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind   msg.ChatKind
		turn   msg.Turn
		config string
		want   msg.PreviewMode
	}{
		{msg.ChatDM, msg.Turn{}, "", msg.PreviewText},
		{msg.ChatWeb, msg.Turn{}, "", msg.PreviewText},
		{msg.ChatGroup, msg.Turn{}, "", msg.PreviewLine},
		{msg.ChatChannel, msg.Turn{}, "{}", msg.PreviewLine},
		{msg.ChatGroup, msg.Turn{ThreadID: "17"}, "{}", msg.PreviewText},
		{msg.ChatChannel, msg.Turn{ThreadID: "17"}, `{"progress":"off"}`, msg.PreviewOff},
		{msg.ChatDM, msg.Turn{}, `{"progress":"status"}`, msg.PreviewLine},
		{msg.ChatGroup, msg.Turn{}, `{"progress":"live"}`, msg.PreviewText},
		{"", msg.Turn{}, "", msg.PreviewText}, // by the address
		{"", msg.Turn{ChatJID: "telegram:-1"}, "", msg.PreviewLine},
		{msg.ChatDM, msg.Turn{Kind: msg.Broadcast}, "", ""},
		{msg.ChatDM, msg.Turn{Kind: msg.Delegated}, "", ""},
		{msg.ChatDM, msg.Turn{Topic: msg.DelegatedTopic(1)}, "", ""}, // goes on with a request
	} {
		turn := test.turn
		if turn.Kind == "" {
			turn.Kind = msg.Conversation
		}
		if turn.ChatJID == "" {
			turn.ChatJID = "telegram:1"
		}
		if got := previewMode(&turn, test.config, test.kind); got != test.want {
			t.Errorf("%s, %+v, config %q: %q, want %q", test.kind, test.turn, test.config, got, test.want)
		}
	}
}

// The mode is stored with a turn that begins a run, and with one that goes to a run that is there.
func TestPreviewMode_IsStoredWhenATurnBegins(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	id, _, err := storetest.Put(t.Context(), s, &msg.Message{ChatJID: "telegram:-1", Direction: msg.In, Content: "x"})
	if err != nil {
		t.Fatal(err)
	}
	turn := func() *msg.Turn {
		return &msg.Turn{Kind: msg.Conversation, Folder: "eng", ChatJID: "telegram:-1", CreatedAt: 1, RowCount: 1,
			TriggerMessageID: id}
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		group := msg.Group{Folder: "eng", Config: json.RawMessage(`{"progress":"live"}`)}
		_, err := tx.PutGroup(&group)
		first := turn()
		_, put := PutTurn(tx, first, 5)
		run := msg.Run{Folder: "eng", ChatJID: first.ChatJID, Runtime: "process", StartedAt: 1}
		err = errors.Join(err, put, tx.PutChat(first.ChatJID, msg.ChatGroup, "", 1), StartRun(tx, &run, first.ID))
		err = errors.Join(err, tx.Exec(`UPDATE turns SET state = 'done', ended_at = 2`))
		second := turn()
		_, put = PutTurn(tx, second, 5)
		if second.RunID != run.ID {
			t.Errorf("the second turn is in run %d, not %d", second.RunID, run.ID)
		}
		return errors.Join(err, put)
	})
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM turns WHERE preview = ?`, msg.PreviewText); n != 2 {
		t.Errorf("%d turns have the group's mode", n)
	}
}
