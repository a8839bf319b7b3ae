package chatsim

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/telegram"
)

// send sends a text as the bot and ignores the response.
func send(t *testing.T, base, token string, p Conversation, text string) {
	t.Helper()
	_, id := msg.SplitJID(p.Chat)
	form := url.Values{"chat_id": {id}, "text": {text}}
	if p.Thread != "" {
		form.Set("message_thread_id", p.Thread)
	}
	if res, err := http.PostForm(base+"/bot"+token+"/sendMessage", form); err == nil {
		res.Body.Close()
	}
}

func TestTelegram_Arrivals_ListAcceptedMessages(t *testing.T) {
	w := NewTelegram(Size{5, 3}, telegram.Options{})
	base, err := w.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	private, topic := w.Conversations()[0], w.Conversations()[len(w.Conversations())-1]
	if topic.Thread == "" {
		t.Fatalf("%v is not a topic", topic)
	}
	for _, p := range []Conversation{private, topic} {
		if id, err := w.Do(Action{Conversation: p, Verb: msg.VerbMention, Text: "hello"}); err != nil || id == "" {
			t.Fatalf("in %v: %q, %v", p, id, err)
		}
		send(t, base, w.Token(), p, "hello yourself")
	}
	send(t, base, w.Token(), private, strings.Repeat("x", 5000)) // refused
	var got []string
	for _, a := range w.Arrivals() {
		got = append(got, fmt.Sprint(a.Chat, " ", a.Thread, " ", a.Text))
	}
	want := []string{private.Chat + "  hello yourself", topic.Chat + " " + topic.Thread + " hello yourself"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if w.AllAcknowledged() {
		t.Error("all acknowledged before the first getUpdates")
	}
}

func TestTelegram_Do_ChangesMessages(t *testing.T) {
	w := NewTelegram(Size{5, 3}, telegram.Options{})
	p := w.Conversations()[0]
	id, err := w.Do(Action{Conversation: p, Verb: msg.VerbMessage, Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []Action{
		{Conversation: p, Verb: msg.VerbEdit, Text: "two", Target: id},
		{Conversation: p, Verb: msg.VerbReaction, Text: "👍", Target: id},
		{Conversation: p, Verb: msg.VerbDelete, Target: id},
	} {
		if _, err := w.Do(a); err != nil {
			t.Errorf("%s: %v", a.Verb, err)
		}
	}
	if m := w.rooms[p.Chat].Messages()[0]; m.Text != "two" || len(w.rooms[p.Chat].Reactions(m.ID)) != 1 {
		t.Errorf("text %q, reactions %v", m.Text, w.rooms[p.Chat].Reactions(m.ID))
	}
	if _, err := w.Do(Action{Conversation: p, Verb: msg.VerbEdit, Text: "three", Target: "99"}); err == nil {
		t.Error("edited a missing message")
	}
}

func TestTelegram_InjectRandomFault_ReachesEveryFault(t *testing.T) {
	w, random, names := NewTelegram(Size{5, 3}, telegram.Options{}), rand.New(rand.NewPCG(1, 0)), map[string]bool{}
	for range 500 {
		name, _, _ := strings.Cut(w.InjectRandomFault(random), " ×")
		names[name] = true
	}
	for _, want := range []string{"sendMessage", "getUpdates", "*", "duplicate updates", "reordered updates", "redelivered updates", "malformed update"} {
		if !names[want] {
			t.Errorf("%s never injected: %v", want, names)
		}
	}
}
