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

// send has the bot send a text, and ignores what becomes of it.
func send(t *testing.T, base, token string, p Place, text string) {
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

func TestTelegramRemembersWhatArrived(t *testing.T) {
	w := NewTelegram(Size{5, 3}, telegram.Options{})
	base, err := w.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	private, topic := w.Places()[0], w.Places()[len(w.Places())-1]
	if topic.Thread == "" {
		t.Fatalf("%v is no topic", topic)
	}
	for _, p := range []Place{private, topic} {
		if id, err := w.Do(Act{Place: p, Verb: msg.VerbMention, Text: "hello"}); err != nil || id == "" {
			t.Fatalf("in %v: %q, %v", p, id, err)
		}
		send(t, base, w.Token(), p, "hello yourself")
	}
	send(t, base, w.Token(), private, strings.Repeat("x", 5000)) // refused
	var got []string
	for _, a := range w.Arrived() {
		got = append(got, fmt.Sprint(a.Chat, " ", a.Thread, " ", a.Text))
	}
	want := []string{private.Chat + "  hello yourself", topic.Chat + " " + topic.Thread + " hello yourself"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if w.Quiet() {
		t.Error("it is quiet though nobody has read anything")
	}
}

func TestWhatPeopleChangeInTelegram(t *testing.T) {
	w := NewTelegram(Size{5, 3}, telegram.Options{})
	p := w.Places()[0]
	id, err := w.Do(Act{Place: p, Verb: msg.VerbMessage, Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []Act{
		{Place: p, Verb: msg.VerbEdit, Text: "two", Target: id},
		{Place: p, Verb: msg.VerbReaction, Text: "👍", Target: id},
		{Place: p, Verb: msg.VerbDelete, Target: id},
	} {
		if _, err := w.Do(a); err != nil {
			t.Errorf("%s: %v", a.Verb, err)
		}
	}
	if m := w.room[p.Chat].Messages()[0]; m.Text != "two" || len(w.room[p.Chat].Reactions(m.ID)) != 1 {
		t.Errorf("it says %q, with %v", m.Text, w.room[p.Chat].Reactions(m.ID))
	}
	if _, err := w.Do(Act{Place: p, Verb: msg.VerbEdit, Text: "three", Target: "99"}); err == nil {
		t.Error("what is not there was edited")
	}
}

func TestEveryUpsetHasAName(t *testing.T) {
	w, random, names := NewTelegram(Size{5, 3}, telegram.Options{}), rand.New(rand.NewPCG(1, 0)), map[string]bool{}
	for range 500 {
		name, _, _ := strings.Cut(w.Upset(random), " ×")
		names[name] = true
	}
	for _, want := range []string{"sendMessage", "getUpdates", "*", "updates come twice", "updates come in disorder", "updates come again", "an update that nobody can read"} {
		if !names[want] {
			t.Errorf("%s never happens: %v", want, names)
		}
	}
}
