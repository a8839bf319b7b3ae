package outbound

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/discord"
)

func (b *senderFixture) lane() store.Lane {
	return store.Lane{ChatJID: b.address(b.channel.ChannelID)}
}

// message is the message of an id, nil if there is none.
func (b *senderFixture) message(id string) *fake.Message {
	for _, m := range b.channel.Messages() {
		if m.ID == id {
			return &m
		}
	}
	return nil
}

// begun makes a preview in the channel.
func (b *senderFixture) begun(t *testing.T) string {
	t.Helper()
	id, err := b.ShowPreview(t.Context(), &adapter.Preview{Turn: 1, In: b.lane(), Line: adapter.PreviewStart})
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	return id
}

func TestShowPreview_MessageIsChangedAndBecomesTheAnswer(t *testing.T) {
	b := newSenderFixture(t)
	id := b.begun(t)
	if m := b.message(id); m == nil || m.Content != "⏳ Working on it…" || len(m.Buttons()) != 0 {
		t.Fatalf("%+v", m)
	}
	for range 2 {
		if same, err := b.ShowPreview(t.Context(), &adapter.Preview{Turn: 1, In: b.lane(), PlatformID: id, Text: "```\ncode @everyone", Line: "Run **it**"}); same != id || err != nil {
			t.Fatalf("%q, %v", same, err)
		}
	}
	m := b.message(id)
	if strings.Count(m.Content, "```") != 2 || !strings.HasSuffix(m.Content, "⏳ Run \\*\\*it\\*\\*") || m.MentionEveryone || !maps.Equal(m.Buttons(), map[string]string{"Stop": "stop:1"}) {
		t.Errorf("%q %q", m.Content, m.Buttons())
	}
	row, part := b.row(t, msg.Message{Content: "**done**"})
	edit, ok := b.TakeOver(part, id)
	if !ok || !edit.(adapter.Repeatable).Repeatable() {
		t.Fatalf("%+v", edit)
	}
	for range 2 { // as after a crash
		b.send(t, row, edit)
	}
	if m := b.message(id); m.Content != "**done**" || len(m.Buttons()) != 0 || b.made() != 1 {
		t.Errorf("%q with %q, %d messages", m.Content, m.Buttons(), b.made())
	}
}

// A refused button takes that of the preview away all the same.
func TestTakeOver_Answer_HasItsOwnButton(t *testing.T) {
	for refused, want := range map[bool]map[string]string{false: {"Undo": "undo:5"}, true: {}} {
		b := newSenderFixture(t)
		id := b.begun(t)
		if _, err := b.ShowPreview(t.Context(), &adapter.Preview{Turn: 5, In: b.lane(), PlatformID: id, Text: "half"}); err != nil {
			t.Fatal(err)
		}
		row, part := b.row(t, msg.Message{Content: "**done**", TurnID: 5, UndoUntil: 1})
		edit, _ := b.TakeOver(part, id)
		if refused {
			b.InjectFault(fake.Fault{Route: fake.EditMessage, Status: http.StatusBadRequest,
				Body: `{"code":50035,"message":"Invalid Form Body","errors":{"components":{"_errors":[{"code":"COMPONENT_LAYOUT_WIDTH_EXCEEDED"}]}}}`})
		}
		_, err := adaptertest.Send(t.Context(), b.Sender, row, edit)
		if m := b.message(id); m.Content != "**done**" || !maps.Equal(m.Buttons(), want) || (err != nil) != refused {
			t.Errorf("%q %q, %v", m.Content, m.Buttons(), err)
		}
	}
}

// A message that is gone, or has no button, is no failure.
func TestRemoveUndo_Button_IsGone(t *testing.T) {
	b := newSenderFixture(t)
	row, part := b.row(t, msg.Message{Content: "**done**", TurnID: 5, UndoUntil: 1})
	id, err := b.Send(t.Context(), row, part)
	if m := b.message(id); err != nil || !maps.Equal(m.Buttons(), map[string]string{"Undo": "undo:5"}) {
		t.Fatalf("%v, %+v", err, m)
	}
	for _, id := range []string{id, id, "4711", "old:" + id} {
		if err := b.RemoveUndo(t.Context(), row, part, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if m := b.message(id); m.Content != "**done**" || len(m.Buttons()) != 0 {
		t.Errorf("%q %q", m.Content, m.Buttons())
	}
	b.InjectFault(fake.Fault{Route: fake.EditMessage, RetryAfter: time.Second})
	var f *adapter.Failure
	if err := b.RemoveUndo(t.Context(), row, part, id); !errors.As(err, &f) || f.Class != msg.Rate {
		t.Errorf("%v", err)
	}
}

func TestTakeOver_NotPossible(t *testing.T) {
	b := newSenderFixture(t)
	_, part := b.row(t, msg.Message{Content: "text"})
	c := part.(call)
	withFile := c
	withFile.file = &adapter.File{}
	for _, tt := range []struct {
		part call
		id   string
	}{{withFile, "5"}, {c, "old:5"}, {composer{}.Delete("5"), "6"}} {
		if _, ok := b.TakeOver(tt.part, tt.id); ok {
			t.Errorf("%+v takes over %s", tt.part, tt.id)
		}
	}
}

// A preview may have the same text as the answer: it is not taken for that.
func TestFind_Preview_IsNotThePart(t *testing.T) {
	b := newSenderFixture(t)
	row, part := b.row(t, msg.Message{Content: "done"})
	id := b.begun(t)
	if _, err := b.ShowPreview(t.Context(), &adapter.Preview{Turn: 1, In: b.lane(), PlatformID: id, Text: "done"}); err != nil {
		t.Fatal(err)
	}
	find := func() string {
		t.Helper()
		found, err := b.search(t.Context(), row, part.(call))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := find(); found != id {
		t.Fatalf("found %q without a preview's row", found)
	}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "acme", ChatJID: row.ChatJID, CreatedAt: 1}
	err := b.Store.Write(t.Context(), func(tx *store.Tx) error {
		trigger := &msg.Message{ChatJID: row.ChatJID, Direction: msg.In, Content: "ask"}
		if _, _, err := tx.PutMessage(trigger); err != nil {
			return err
		}
		turn.TriggerMessageID = trigger.ID
		if _, err := gatedtest.PutTurn(tx, turn, 0); err != nil {
			return err
		}
		if err := gatedtest.StartRun(tx, &msg.Run{Folder: "acme", ChatJID: row.ChatJID, StartedAt: 1}, turn.ID); err != nil {
			return err
		}
		if err := tx.ClaimOutbound(row.ID, 1, 1); err != nil { // nothing waits in the lane
			return err
		}
		if err := tx.SettleOutbound(row.ID, msg.OutSent, ""); err != nil {
			return err
		}
		p, err := rows.BeginPreview(tx, turn.ID, 1)
		if err != nil {
			return err
		}
		return rows.KeepPreview(tx, p, id, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := find(); found != "" {
		t.Errorf("found %q", found)
	}
}
