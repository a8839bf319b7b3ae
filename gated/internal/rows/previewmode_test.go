package rows

import (
	"testing"

	"arizuko/pkg/msg"
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
		if got := previewMode(test.config, test.kind, &turn); got != test.want {
			t.Errorf("%s, %+v, config %q: %q, want %q", test.kind, test.turn, test.config, got, test.want)
		}
	}
}
