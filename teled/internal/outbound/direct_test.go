package outbound

import (
	"strconv"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

// What is sent to a subscriber of a channel goes to their topic, and nowhere else.
func TestSend_DirectMessagesOfChannel_GoToTheTopic(t *testing.T) {
	s, p := startSender(t)
	chat := s.DirectMessages("News")
	alice, bob := chat.Subscriber(s.alice), chat.Subscriber(s.User("Bob", "bob"))
	asked := alice.Say(s.alice, "are you open?")
	jid := telegramapi.TopicJID("telegram", chat.ChatID, alice.DirectID)
	thread := strconv.FormatInt(alice.DirectID, 10)
	topicOf := func(id string) int64 {
		t.Helper()
		for _, m := range chat.Messages() {
			if strconv.Itoa(m.ID) == id {
				return m.DirectTopic.ID
			}
		}
		t.Fatalf("no message %q", id)
		return 0
	}
	for what, row := range map[string]*msg.Message{
		"answer":       {Content: "yes", ThreadID: thread, ReplyToID: strconv.Itoa(asked.ID)},
		"without more": {Content: "yes"},
		"file":         {Kind: msg.KindFile, ThreadID: thread, Attachments: p.write(t, "a.txt", "text/plain", []byte("yes"))},
	} {
		row.ChatJID = jid
		id, err := sendAll(t, p, row)
		if err != nil || topicOf(id) != alice.DirectID {
			t.Errorf("%s: %q, %v", what, id, err)
		}
	}
	lane := store.Lane{ChatJID: jid, ThreadID: thread}
	id, err := p.ShowPreview(t.Context(), &adapter.Preview{Turn: 1, In: lane, Line: adapter.PreviewStart})
	if err != nil || topicOf(id) != alice.DirectID {
		t.Fatalf("preview: %q, %v", id, err)
	}
	parts, err := p.Cut(&msg.Message{ChatJID: jid, ThreadID: thread, Content: "done"})
	if err != nil {
		t.Fatal(err)
	}
	edit, _ := p.TakeOver(parts[0], id)
	if _, err := p.Send(t.Context(), &msg.Message{ChatJID: jid}, edit); err != nil || s.last().Params["direct_messages_topic_id"] != "" {
		t.Errorf("%v: %v", err, s.last().Params)
	}
	calls := len(s.Calls())
	if err := p.Type(t.Context(), lane, true); err != nil || len(s.Calls()) != calls {
		t.Errorf("typing: %v, or a call that Telegram refuses", err)
	}
	if _, err := sendAll(t, p, &msg.Message{ChatJID: telegramapi.JID("telegram", chat.ChatID), Content: "to all?"}); err == nil {
		t.Error("a message without a topic is sent")
	}

	other := store.Lane{ChatJID: telegramapi.TopicJID("telegram", chat.ChatID, bob.DirectID)}
	one, limits := Pace().Lane(lane)
	if two, _ := Pace().Lane(other); one != two || len(limits) != 2 {
		t.Errorf("the limits of %q and %q: %v", one, two, limits)
	}
}
