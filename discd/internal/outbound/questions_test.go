package outbound

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/msg"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// shown is a message of the channel.
func (b *senderFixture) shown(t *testing.T, id string) fake.Message {
	t.Helper()
	for _, m := range b.channel.Messages() {
		if m.ID == id {
			return m
		}
	}
	t.Fatalf("no message %s", id)
	return fake.Message{}
}

func TestSend_Question_HasButtonsUntilItEnds(t *testing.T) {
	b := newSenderFixture(t)
	long := strings.Repeat("x", 60)
	ask := &msg.Ask{ID: 5, Options: []string{"a", "b", "c", "d", "e", long}}
	m, part := b.row(t, msg.Message{Content: "Sure?\n\n1. a", Ask: ask})
	id := b.send(t, m, part)
	want := map[string]string{"a": "ask:5:1", "b": "ask:5:2", "c": "ask:5:3", "d": "ask:5:4", "e": "ask:5:5", long: "ask:5:6"}
	got := b.shown(t, id)
	if diff := cmp.Diff(want, got.Buttons()); diff != "" {
		t.Errorf("buttons (-want +got):\n%s", diff)
	}
	edit, part := b.row(t, msg.Message{Kind: msg.KindEdit, TargetID: id, Content: "**a**", Ask: ask})
	b.send(t, edit, part)
	if got := b.shown(t, id); got.Content != "**a**" || len(got.Buttons()) != 0 {
		t.Errorf("it is %q with the buttons %q", got.Content, got.Buttons())
	}
}

// Without buttons the numbers of the text are left.
func TestSend_ButtonsRefused_SendsText(t *testing.T) {
	b := newSenderFixture(t)
	m, part := b.row(t, msg.Message{Content: "Sure?\n\n1. a", Ask: &msg.Ask{ID: 5, Options: []string{strings.Repeat("x", 81)}}}) // above the limit
	id, err := adaptertest.Send(t.Context(), b, m, part)
	var remark *adapter.Remark
	if !errors.As(err, &remark) || !strings.Contains(remark.Text, "sent without buttons") {
		t.Errorf("%v, want a remark", err)
	}
	if got := b.shown(t, id); len(got.Components) != 0 || got.Content != "Sure?\n\n1. a" {
		components, _ := json.Marshal(got.Components)
		t.Errorf("it is %q with %s", got.Content, components)
	}
}
