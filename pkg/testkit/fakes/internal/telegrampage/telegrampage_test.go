package telegrampage

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/pagetest"
	"arizuko/pkg/testkit/fakes/telegram"
)

type fixture struct {
	*pagetest.Site
	t  *testing.T
	tg *telegram.Server
}

func start(t *testing.T) fixture {
	t.Helper()
	tg := telegram.New(telegram.Options{PrivacyOff: true})
	return fixture{Site: pagetest.Open(t, New(tg)), t: t, tg: tg}
}

// chat finds one of the ready-made chats.
func (r fixture) chat(title string) telegram.Chat {
	r.t.Helper()
	for _, c := range r.tg.Chats() {
		if c.Title+c.FirstName == title {
			return c
		}
	}
	r.t.Fatalf("no chat %s", title)
	return telegram.Chat{}
}

func (r fixture) bot(method string, fields url.Values) {
	r.t.Helper()
	if status, body := r.Post("/bot"+r.tg.Token()+"/"+method, fields); status != http.StatusOK {
		r.t.Fatalf("%s: %s", method, body)
	}
}

func TestPage_Conversation(t *testing.T) {
	r := start(t)
	_, page := r.Get("/")
	r.Shows(page, "<title>Alice · fake Telegram</title>")
	r.Hides(page, ">Bob</a>")
	team := r.chat("Team")
	chat := fmt.Sprint(team.ID)
	_, page = r.Send(nil, "chat", chat, "text", "@arizuko_bot <b>hello</b>")
	r.Shows(page, "@arizuko_bot &lt;b&gt;hello&lt;/b&gt;")

	here := r.tg.Place(team.ID, 0)
	asked := here.Messages()[0]
	r.bot("sendChatAction", url.Values{"chat_id": {chat}, "action": {"typing"}})
	address := "/?chat=" + chat
	_, page = r.Get(address)
	r.Shows(page, "arizuko_bot is typing…")
	r.bot("sendMessage", url.Values{"chat_id": {chat}, "text": {"hi yourself"}, "reply_to_message_id": {fmt.Sprint(asked.ID)}})
	r.bot("setMessageReaction", url.Values{"chat_id": {chat}, "message_id": {fmt.Sprint(asked.ID)}, "reaction": {`[{"type":"emoji","emoji":"🤝"}]`}})
	_, page = r.Get(address)
	r.Shows(page, "hi yourself")
	r.Shows(page, "<blockquote>Alice: @arizuko_bot")
	r.Shows(page, "🤝")
	r.Hides(page, "typing…")

	answer := fmt.Sprint(here.Messages()[1].ID)
	bob := fmt.Sprint(r.chat("Alice").ID + 1)
	r.Send([]byte("read me"), "chat", chat, "as", bob, "reply", answer, "text", "see")
	last := here.Messages()[2]
	if last.Document == nil || last.Caption != "see" || last.ReplyTo == nil || last.From.FirstName != "Bob" {
		t.Errorf("sent %+v", last)
	}
	if status, body := r.Get("/files/" + last.Document.FileID); status != 200 || body != "read me" {
		t.Errorf("the file: %d %s", status, body)
	}
	_, page = r.Send(nil, "chat", chat, "edit", fmt.Sprint(asked.ID), "text", "better")
	r.Shows(page, "better")
	_, page = r.Post("/react", url.Values{"chat": {chat}, "message": {answer}, "emoji": {"🔥"}})
	r.Shows(page, `<p class="reactions">🔥 </p>`)
}

func TestPage_Topics(t *testing.T) {
	r := start(t)
	forum := r.chat("Operations")
	topic := r.tg.Place(forum.ID, 0).Topics()[0]
	chat, thread := fmt.Sprint(forum.ID), fmt.Sprint(topic.Thread)
	r.Send(nil, "chat", chat, "topic", thread, "text", "ship it")
	r.Send(nil, "chat", chat, "text", "in General")
	_, page := r.Get("/?chat=" + chat + "&topic=" + thread)
	r.Shows(page, "ship it")
	r.Shows(page, "#incidents")
	r.Hides(page, "in General")
	_, page = r.Get("/?chat=" + chat)
	r.Shows(page, "in General")
	r.Shows(page, "· #deploys")

	r.bot("sendChatAction", url.Values{"chat_id": {chat}, "message_thread_id": {thread}, "action": {"typing"}})
	for where, isTyping := range map[string]bool{"": true, "&topic=" + thread: true, "&topic=1": false} {
		if _, page := r.Get("/?chat=" + chat + where); strings.Contains(page, "is typing…") != isTyping {
			t.Errorf("at %q it types: %v, want %v", where, !isTyping, isTyping)
		}
	}
}

func TestPage_RefusesInvalidForms(t *testing.T) {
	r := start(t)
	alice := fmt.Sprint(r.chat("Alice").ID)
	if status, _ := r.Get("/?chat=1"); status != http.StatusNotFound {
		t.Errorf("an unknown chat: %d", status)
	}
	for _, fields := range [][]string{{"chat", "1", "text", "x"}, {"chat", alice, "reply", "99", "text", "x"}, {"chat", alice, "edit", "99", "text", "x"},
		{"chat", alice, "topic", "7", "text", "x"}} {
		if status, _ := r.Send(nil, fields...); status < 400 || status >= 500 {
			t.Errorf("%v: %d", fields, status)
		}
	}
	if status, _ := r.Get("/files/nonsense"); status != http.StatusNotFound {
		t.Errorf("an unknown file: %d", status)
	}
}
