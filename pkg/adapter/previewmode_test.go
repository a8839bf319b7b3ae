package adapter

import (
	"encoding/json"
	"testing"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestPreviewFacts_ModeIsOfGroupElseOfChat(t *testing.T) {
	t.Parallel()
	p := &previews{shell: &Shell{Options: Options{Now: time.Now}, previewer: &previewer{}}}
	for _, test := range []struct {
		kind   msg.ChatKind
		thread string
		config string
		want   groupconfig.Progress
	}{
		{msg.ChatDM, "", "", groupconfig.ProgressLive},
		{msg.ChatWeb, "", "", groupconfig.ProgressLive},
		{msg.ChatGroup, "", "", groupconfig.ProgressStatus},
		{msg.ChatChannel, "", "{}", groupconfig.ProgressStatus},
		{msg.ChatGroup, "17", "{}", groupconfig.ProgressLive},
		{msg.ChatChannel, "17", `{"progress":"off"}`, groupconfig.ProgressOff},
		{msg.ChatDM, "", `{"progress":"status"}`, groupconfig.ProgressStatus},
		{msg.ChatGroup, "", `{"progress":"live"}`, groupconfig.ProgressLive},
	} {
		turn := &rows.PreviewTurn{ChatKind: test.kind, Lane: store.Lane{ChatJID: "telegram:1", ThreadID: test.thread}, Config: json.RawMessage(test.config)}
		if got := p.factsOf(turn, nil).mode; got != test.want {
			t.Errorf("%s, thread %q, config %q: %s, want %s", test.kind, test.thread, test.config, got, test.want)
		}
	}
}
