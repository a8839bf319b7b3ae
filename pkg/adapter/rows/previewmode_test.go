package rows

import (
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestPreviewMode_IsOfGroupElseOfChat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind   msg.ChatKind
		thread string
		config string
		want   PreviewMode
	}{
		{msg.ChatDM, "", "", PreviewText},
		{msg.ChatWeb, "", "", PreviewText},
		{msg.ChatGroup, "", "", PreviewLine},
		{msg.ChatChannel, "", "{}", PreviewLine},
		{msg.ChatGroup, "17", "{}", PreviewText},
		{msg.ChatChannel, "17", `{"progress":"off"}`, PreviewOff},
		{msg.ChatDM, "", `{"progress":"status"}`, PreviewLine},
		{msg.ChatGroup, "", `{"progress":"live"}`, PreviewText},
	} {
		in := store.Lane{ChatJID: "telegram:1", ThreadID: test.thread}
		if got := previewMode(test.config, test.kind, in); got != test.want {
			t.Errorf("%s, thread %q, config %q: %s, want %s", test.kind, test.thread, test.config, got, test.want)
		}
	}
}
