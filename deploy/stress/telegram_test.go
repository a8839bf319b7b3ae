package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
)

// send has the bot send a text, and ignores what becomes of it.
func send(t *testing.T, base, token string, p place, text string) {
	t.Helper()
	_, id := msg.SplitJID(p.chat)
	form := url.Values{"chat_id": {id}, "text": {text}}
	if p.thread != "" {
		form.Set("message_thread_id", p.thread)
	}
	if res, err := http.PostForm(base+"/bot"+token+"/sendMessage", form); err == nil {
		res.Body.Close()
	}
}

func TestTelegramRemembersWhatArrived(t *testing.T) {
	w := newTelegramWorld()
	base, err := w.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.close() }()
	private, topic := w.places()[0], w.places()[len(w.places())-1]
	if topic.thread == "" {
		t.Fatalf("%v is no topic", topic)
	}
	for _, p := range []place{private, topic} {
		if id, err := w.do(act{place: p, verb: msg.VerbMention, text: "hello"}); err != nil || id == "" {
			t.Fatalf("in %v: %q, %v", p, id, err)
		}
		send(t, base, w.Token(), p, "hello yourself")
	}
	send(t, base, w.Token(), private, strings.Repeat("x", 5000)) // refused
	var got []string
	for _, a := range w.arrived() {
		got = append(got, fmt.Sprint(a.chat, " ", a.thread, " ", a.text))
	}
	want := []string{private.chat + "  hello yourself", topic.chat + " " + topic.thread + " hello yourself"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if w.quiet() {
		t.Error("it is quiet though nobody has read anything")
	}
}

func TestWhatPeopleChangeInTelegram(t *testing.T) {
	w := newTelegramWorld()
	p := w.places()[0]
	id, err := w.do(act{place: p, verb: msg.VerbMessage, text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []act{
		{place: p, verb: msg.VerbEdit, text: "two", target: id},
		{place: p, verb: msg.VerbReaction, text: "👍", target: id},
		{place: p, verb: msg.VerbDelete, target: id},
	} {
		if _, err := w.do(a); err != nil {
			t.Errorf("%s: %v", a.verb, err)
		}
	}
	if m := w.room[p.chat].Messages()[0]; m.Text != "two" || len(w.room[p.chat].Reactions(m.ID)) != 1 {
		t.Errorf("it says %q, with %v", m.Text, w.room[p.chat].Reactions(m.ID))
	}
	if _, err := w.do(act{place: p, verb: msg.VerbEdit, text: "three", target: "99"}); err == nil {
		t.Error("what is not there was edited")
	}
}

func TestEveryUpsetHasAName(t *testing.T) {
	w, random, names := newTelegramWorld(), seeded(1), map[string]bool{}
	for range 500 {
		name, _, _ := strings.Cut(w.upset(random), " ×")
		names[name] = true
	}
	for _, want := range []string{"sendMessage", "getUpdates", "*", "updates come twice", "updates come in disorder", "updates come again", "an update that nobody can read"} {
		if !names[want] {
			t.Errorf("%s never happens: %v", want, names)
		}
	}
}
