package rows

import (
	"encoding/json"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPreviewMode_IsOfGroupElseOfChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
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
		turn.Folder = "eng"
		var got msg.PreviewMode
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			for _, query := range []string{`DELETE FROM registered_groups`, `DELETE FROM chats`} {
				if err := tx.Exec(query); err != nil {
					return err
				}
			}
			if test.config != "" {
				group := msg.Group{Folder: turn.Folder, Config: json.RawMessage(test.config)}
				if _, err := tx.PutGroup(&group); err != nil {
					return err
				}
			}
			if test.kind != "" {
				if err := tx.PutChat(turn.ChatJID, test.kind, "", 1); err != nil {
					return err
				}
			}
			got, err = previewMode(tx, &turn)
			return err
		})
		if got != test.want {
			t.Errorf("%s, %+v, config %q: %q, want %q", test.kind, test.turn, test.config, got, test.want)
		}
	}
}
