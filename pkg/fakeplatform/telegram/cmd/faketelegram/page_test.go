package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/fakeplatform/telegram"
)

type rig struct {
	t    *testing.T
	tg   *telegram.Server
	site *httptest.Server
}

func start(t *testing.T) rig {
	t.Helper()
	tg := telegram.New(telegram.Options{PrivacyOff: true})
	site := httptest.NewServer(newPage(tg))
	t.Cleanup(site.Close)
	return rig{t: t, tg: tg, site: site}
}

// chat finds one of the ready-made chats.
func (r rig) chat(title string) telegram.Chat {
	r.t.Helper()
	for _, c := range r.tg.Chats() {
		if c.Title+c.FirstName == title {
			return c
		}
	}
	r.t.Fatalf("no chat %s", title)
	return telegram.Chat{}
}

func (r rig) get(path string) (int, string) {
	r.t.Helper()
	resp, err := r.site.Client().Get(r.site.URL + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// send posts the form of the page; it returns the page that comes back.
func (r rig) send(file []byte, fields ...string) (int, string) {
	r.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		_ = form.WriteField(fields[i], fields[i+1])
	}
	if file != nil {
		part, err := form.CreateFormFile("file", "notes.txt")
		if err != nil {
			r.t.Fatal(err)
		}
		_, _ = part.Write(file)
	}
	_ = form.Close()
	return r.post("/send", &body, form.FormDataContentType())
}

func (r rig) post(path string, body io.Reader, kind string) (int, string) {
	r.t.Helper()
	resp, err := r.site.Client().Post(r.site.URL+path, kind, body)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(page)
}

func (r rig) bot(method string, fields url.Values) {
	r.t.Helper()
	status, body := r.post("/bot"+r.tg.Token()+"/"+method, strings.NewReader(fields.Encode()), "application/x-www-form-urlencoded")
	if status != http.StatusOK {
		r.t.Fatalf("%s: %s", method, body)
	}
}

func (r rig) shows(page, want string) {
	r.t.Helper()
	if !strings.Contains(page, want) {
		r.t.Errorf("%q is not in the page:\n%s", want, page)
	}
}

func TestConversation(t *testing.T) {
	r := start(t)
	team := r.chat("Team")
	chat := fmt.Sprint(team.ID)
	_, page := r.send(nil, "chat", chat, "text", "@arizuko_bot <b>hello</b>")
	r.shows(page, "@arizuko_bot &lt;b&gt;hello&lt;/b&gt;")

	here := r.tg.Place(team.ID, 0)
	asked := here.Messages()[0]
	r.bot("sendChatAction", url.Values{"chat_id": {chat}, "action": {"typing"}})
	address := "/?chat=" + chat
	_, page = r.get(address)
	r.shows(page, "arizuko_bot is typing…")
	r.bot("sendMessage", url.Values{"chat_id": {chat}, "text": {"hi yourself"}, "reply_to_message_id": {fmt.Sprint(asked.ID)}})
	r.bot("setMessageReaction", url.Values{"chat_id": {chat}, "message_id": {fmt.Sprint(asked.ID)}, "reaction": {`[{"type":"emoji","emoji":"🤝"}]`}})
	_, page = r.get(address)
	r.shows(page, "hi yourself")
	r.shows(page, "<blockquote>Alice: @arizuko_bot")
	r.shows(page, "🤝")
	if strings.Contains(page, "typing…") {
		t.Error("it types after it has answered")
	}

	answer := fmt.Sprint(here.Messages()[1].ID)
	bob := fmt.Sprint(r.chat("Alice").ID + 1)
	r.send([]byte("read me"), "chat", chat, "as", bob, "reply", answer, "text", "see")
	last := here.Messages()[2]
	if last.Document == nil || last.Caption != "see" || last.ReplyTo == nil || last.From.FirstName != "Bob" {
		t.Errorf("sent %+v", last)
	}
	if status, body := r.get("/files/" + last.Document.FileID); status != 200 || body != "read me" {
		t.Errorf("the file: %d %s", status, body)
	}
	_, page = r.send(nil, "chat", chat, "edit", fmt.Sprint(asked.ID), "text", "better")
	r.shows(page, "better")
	_, page = r.post("/react", strings.NewReader(url.Values{"chat": {chat}, "message": {answer}, "emoji": {"🔥"}}.Encode()), "application/x-www-form-urlencoded")
	r.shows(page, `<p class="reactions">🔥 </p>`)
}

func TestTopics(t *testing.T) {
	r := start(t)
	forum := r.chat("Operations")
	topic := r.tg.Place(forum.ID, 0).Topics()[0]
	chat, thread := fmt.Sprint(forum.ID), fmt.Sprint(topic.Thread)
	r.send(nil, "chat", chat, "topic", thread, "text", "ship it")
	r.send(nil, "chat", chat, "text", "in General")
	_, page := r.get("/?chat=" + chat + "&topic=" + thread)
	r.shows(page, "ship it")
	r.shows(page, "#incidents")
	if strings.Contains(page, "in General") {
		t.Error("the topic shows what is not in it")
	}
	_, page = r.get("/?chat=" + chat)
	r.shows(page, "in General")
	r.shows(page, "· #deploys")
}

func TestRefusals(t *testing.T) {
	r := start(t)
	alice := fmt.Sprint(r.chat("Alice").ID)
	if status, _ := r.get("/?chat=1"); status != http.StatusNotFound {
		t.Errorf("an unknown chat: %d", status)
	}
	for _, fields := range [][]string{{"chat", "1", "text", "x"}, {"chat", alice, "reply", "99", "text", "x"}, {"chat", alice, "edit", "99", "text", "x"},
		{"chat", alice, "topic", "7", "text", "x"}} {
		if status, _ := r.send(nil, fields...); status < 400 || status >= 500 {
			t.Errorf("%v: %d", fields, status)
		}
	}
	if status, _ := r.get("/files/nonsense"); status != http.StatusNotFound {
		t.Errorf("an unknown file: %d", status)
	}
	for header, value := range map[string]string{"Origin": "https://evil.example", "Host": "evil.example"} {
		req, err := http.NewRequest(http.MethodPost, r.site.URL+"/send", strings.NewReader("chat="+alice+"&text=x"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(header, value)
		if header == "Host" {
			req.Host = value
		}
		resp, err := r.site.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %d", header, value, resp.StatusCode)
		}
	}
}

func TestEvents(t *testing.T) {
	r := start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.site.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.site.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	changed := func() {
		t.Helper()
		if !lines.Scan() || lines.Text() != "data: changed" || !lines.Scan() {
			t.Fatalf("got %q, %v", lines.Text(), lines.Err())
		}
	}
	changed() // at once
	r.send(nil, "chat", fmt.Sprint(r.chat("Alice").ID), "text", "x")
	begin := time.Now()
	changed()
	if time.Since(begin) > typing/2 {
		t.Error("that was the ticker, no news")
	}
}

func TestRun(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "example.org:80", "nonsense"} {
		if err := run(t.Context(), []string{"-addr", addr}, io.Discard); err == nil {
			t.Errorf("it listens on %s", addr)
		}
	}
	if err := run(t.Context(), []string{"-h"}, io.Discard); err != nil {
		t.Errorf("help ends with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, told := io.Pipe()
	done := make(chan error)
	go func() { done <- run(ctx, []string{"-addr", "127.0.0.1:0", "-token", "42:abc"}, told) }()
	lines := bufio.NewScanner(out)
	var env []string
	for len(env) < 3 && lines.Scan() {
		env = append(env, lines.Text())
	}
	if env[0] != "export TELEGRAM_BOT_TOKEN=42:abc" || !strings.HasPrefix(env[1], "export TELEGRAM_API_URL=http://127.0.0.1:") {
		t.Errorf("printed %q", env)
	}
	resp, err := http.Get(strings.TrimPrefix(env[1], "export TELEGRAM_API_URL=") + "/bot42:abc/getMe")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("getMe: %v, %v", resp, err)
	}
	resp.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
