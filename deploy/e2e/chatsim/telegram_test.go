package chatsim

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/telegram"
)

// send sends a text as the bot and ignores the response.
func send(t *testing.T, base, token string, c Conversation, text string) {
	t.Helper()
	_, id := msg.SplitJID(c.Chat)
	form := url.Values{"chat_id": {id}, "text": {text}}
	if c.Thread != "" {
		form.Set("message_thread_id", c.Thread)
	}
	if res, err := http.PostForm(base+"/bot"+token+"/sendMessage", form); err == nil {
		res.Body.Close()
	}
}

func TestTelegram_Arrivals_ListAcceptedMessages(t *testing.T) {
	platform := NewTelegram(Size{5, 3}, telegram.Options{})
	base, err := platform.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = platform.Close() }()
	dm, topic := platform.Conversations()[0], platform.Conversations()[len(platform.Conversations())-1]
	if topic.Thread == "" {
		t.Fatalf("%v is not a topic", topic)
	}
	for _, c := range []Conversation{dm, topic} {
		if id, err := platform.Do(Action{Conversation: c, Verb: msg.VerbMention, Text: "hello"}); err != nil || id == "" {
			t.Fatalf("in %v: %q, %v", c, id, err)
		}
		send(t, base, platform.Token(), c, "hello yourself")
	}
	send(t, base, platform.Token(), dm, strings.Repeat("x", 5000)) // refused
	var got []string
	for _, a := range platform.Arrivals() {
		got = append(got, fmt.Sprint(a.Chat, " ", a.Thread, " ", a.Text))
	}
	want := []string{dm.Chat + "  hello yourself", topic.Chat + " " + topic.Thread + " hello yourself"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if platform.AllAcknowledged() {
		t.Error("all acknowledged before the first getUpdates")
	}
}

func TestTelegram_Do_ChangesMessages(t *testing.T) {
	platform := NewTelegram(Size{5, 3}, telegram.Options{})
	c := platform.Conversations()[0]
	id, err := platform.Do(Action{Conversation: c, Verb: msg.VerbMessage, Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []Action{
		{Conversation: c, Verb: msg.VerbEdit, Text: "two", Target: id},
		{Conversation: c, Verb: msg.VerbReaction, Text: "👍", Target: id},
		{Conversation: c, Verb: msg.VerbDelete, Target: id},
	} {
		if _, err := platform.Do(a); err != nil {
			t.Errorf("%s: %v", a.Verb, err)
		}
	}
	if m := platform.rooms[c.Chat].Messages()[0]; m.Text != "two" || len(platform.rooms[c.Chat].Reactions(m.ID)) != 1 {
		t.Errorf("text %q, reactions %v", m.Text, platform.rooms[c.Chat].Reactions(m.ID))
	}
	if _, err := platform.Do(Action{Conversation: c, Verb: msg.VerbEdit, Text: "three", Target: "99"}); err == nil {
		t.Error("edited a missing message")
	}
}
