package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// TestMoveChat_MovesEveryTable moves a chat with rows in every table to an address that
// already has messages.
func TestMoveChat_MovesEveryTable(t *testing.T) {
	t.Parallel()
	const from, to = "telegram:-5", "telegram:-1005"
	s := storetest.Open(t)
	out := &msg.Message{ChatJID: from, Direction: msg.Out, OutState: msg.OutQueued, ReplyToID: "1", Content: "answer", Source: msg.SourceAgent}
	in := &msg.Message{ChatJID: from, PlatformID: "1", Direction: msg.In, Content: "question"}
	fresh := &msg.Message{ChatJID: to, PlatformID: "1", Direction: msg.In, Content: "first in the new chat"}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: from, ReplyTo: "1", Topic: "#a", ThreadID: "7", Place: "7"}
	move := func(tx *store.Tx) error { return tx.MoveChat(from, to, 50) }
	write(t, s, func(tx *store.Tx) error {
		for _, m := range []*msg.Message{in, out, fresh} {
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		turn.TriggerMessageID = in.ID
		for _, err := range []error{
			tx.PutTurn(turn, 0),
			tx.PutChat(from, msg.ChatGroup, "Team", 1), tx.PinTopic(from, "#a"), tx.PutChat(to, msg.ChatGroup, "Team, again", 2),
			tx.BindThread(from, "7", "#a"), tx.PutThread(msg.Thread{ChatJID: from, ID: "7", Title: "Deploys"}),
			tx.PutEngagement(msg.Engagement{ChatJID: from, Place: "7", Folder: "main", Until: 100, At: 10}),
			tx.PutRoute(&msg.Route{Match: "chat_jid=" + from + " verb=mention", Target: "main"}),
			tx.PutRoute(&msg.Route{Match: "platform=telegram room=-5", Target: "main"}),
			tx.PutRoute(&msg.Route{Match: "room=-50", Target: "main"}),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	write(t, s, move)
	write(t, s, move) // Telegram says it twice: in either chat
	if m := must(s.Message(t.Context(), in.ID))(t); m.ChatJID != to || m.PlatformID != "old:1" {
		t.Errorf("the question is %s %s", m.ChatJID, m.PlatformID)
	}
	if m := must(s.Message(t.Context(), fresh.ID))(t); m.PlatformID != "1" {
		t.Errorf("the new chat's own message is %s", m.PlatformID)
	}
	lanes := must(s.OutboxLanes(t.Context(), "telegram"))(t)
	if diff := cmp.Diff([]store.Lane{{ChatJID: to}}, lanes); diff != "" {
		t.Errorf("outbound rows wait (-want +got):\n%s", diff)
	}
	if got := must(s.Turn(t.Context(), turn.ID))(t); got.ChatJID != to || got.ReplyTo != "old:1" {
		t.Errorf("the turn is in %s and replies to %s", got.ChatJID, got.ReplyTo)
	}
	if c := must(s.Chat(t.Context(), to))(t); c.StickyTopic != "#a" || c.Title != "Team, again" {
		t.Errorf("the chat is %+v", c)
	}
	if must(s.Chat(t.Context(), from))(t) != nil {
		t.Error("the old chat still has a row")
	}
	if e := must(s.Engagement(t.Context(), to, "7"))(t); e.Folder != "main" {
		t.Errorf("engaged: %+v", e)
	}
	if must(s.TopicOfThread(t.Context(), to, "7"))(t) != "#a" || must(s.Thread(t.Context(), to, "7"))(t).Title != "Deploys" {
		t.Error("the thread did not move")
	}
	var matches []string
	for _, r := range must(s.Routes(t.Context()))(t) {
		matches = append(matches, r.Match)
	}
	want := []string{"chat_jid=" + to + " verb=mention", "platform=telegram room=-1005", "room=-50"}
	if diff := cmp.Diff(want, matches); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if must(s.Alias(t.Context(), from))(t) != to || must(s.Alias(t.Context(), to))(t) != "" {
		t.Error("the old address has no alias")
	}
}
