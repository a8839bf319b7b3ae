package page_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/internal/page"
	"arizuko/pkg/testkit/fakes/internal/pagetest"
)

// platform is the smallest one: a chat with a thread, and a chat that has only threads.
type platform struct {
	mu       sync.Mutex
	changed  chan struct{}
	messages map[string][]page.Message // by chat and thread
	typing   bool
}

var (
	alice = page.User{ID: "1", Name: "Alice"}
	bob   = page.User{ID: "2", Name: "Bob"}
	robot = page.User{ID: "3", Name: "Robot", Bot: true}
)

func (p *platform) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *platform) happened() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *platform) Chats() []page.Chat {
	return []page.Chat{
		{ID: "team", Name: "Team", Users: []page.User{alice, bob}, Whole: "all", Threads: []page.Thread{{ID: "t1", Name: "deploys"}}},
		{ID: "forum", Name: "Forum", Users: []page.User{bob}, Threads: []page.Thread{{ID: "f1", Name: "first"}, {ID: "f2", Name: "second"}}},
	}
}

func (p *platform) at(at page.Place) string { return at.Chat + "/" + at.Thread }

func (p *platform) Messages(at page.Place) []page.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.messages[p.at(at)]
}

func (p *platform) put(at page.Place, m page.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.ID = fmt.Sprint(len(p.messages[p.at(at)]) + 1)
	p.messages[p.at(at)] = append(p.messages[p.at(at)], m)
	p.happened()
}

func (p *platform) Post(at page.Place, d page.Draft) error {
	if d.Text == "refuse me" {
		return errors.New("a reason <b>")
	}
	m := page.Message{From: map[string]page.User{"1": alice, "2": bob}[at.As], Time: time.Unix(0, 0), Text: d.Text, Answered: d.ReplyTo}
	if d.File != nil {
		m.File, m.FileName = "f", d.File.Name+" "+d.File.MIME
	}
	p.put(at, m)
	return nil
}

func (p *platform) Edit(at page.Place, id, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.messages[p.at(at)] {
		if m := &p.messages[p.at(at)][i]; m.ID == id {
			m.Text, m.Edited = text, true
			return nil
		}
	}
	return errors.New("no such message")
}

func (p *platform) React(at page.Place, id, emoji string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages[p.at(at)][0].Reactions = []string{at.As + emoji + id}
	return nil
}

func (p *platform) Press(at page.Place, id, data string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages[p.at(at)][0].Reactions = []string{at.As + data + id}
	p.messages[p.at(at)][0].Buttons = page.Buttons(map[string]string{"No": "b", "Yes": "a"})
	return nil
}

func (p *platform) IsTyping(page.Place) bool { return p.typing }

func (p *platform) File(id string) (page.File, bool) {
	switch id {
	case "picture":
		return page.File{Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\n")}, true
	case "page":
		return page.File{Name: "../a\".html", Data: []byte("<script>alert(1)</script>")}, true
	}
	return page.File{}, false
}

// whole is the first chat, outside its thread.
var whole = page.Place{Chat: "team"}

type fixture struct {
	*platform
	*pagetest.Site
	t *testing.T
}

// typing is longer than any test: each event is one of a change.
const typing = time.Hour

func start(t *testing.T) fixture {
	t.Helper()
	p := &platform{changed: make(chan struct{}), messages: map[string][]page.Message{}}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "the API at ", r.Host) })
	options := page.Options{Platform: "Chatter", Bot: "Robot", Mention: "@robot", Emoji: []string{"🔥"}, Typing: typing}
	site := pagetest.Open(t, page.New(options, p, api, func(path string) bool { return strings.HasPrefix(path, "/api/") }))
	return fixture{platform: p, Site: site, t: t}
}

func (r fixture) get(path string) string {
	r.t.Helper()
	status, body := r.Get(path)
	if status != http.StatusOK {
		r.t.Fatalf("%s: %d %s", path, status, body)
	}
	return body
}

func TestPage_Conversation(t *testing.T) {
	r := start(t)
	r.Shows(r.get("/"), "<title>Team · fake Chatter</title>", "No messages yet", `data-name="@robot "`, `>#deploys</a>`,
		`<a href="/?as=2&amp;chat=team">Bob</a>`, `<a href="/?as=1&amp;chat=team" aria-current="true">Alice</a>`)
	_, page := r.Send(nil, "chat", "team", "text", "<b>hi</b>\r\nthere")
	r.Shows(page, "&lt;b&gt;hi&lt;/b&gt;\nthere", `class="mine"`, `<a href="/?as=1&amp;chat=team&amp;reply=1">Reply</a>`, `<a href="/?as=1&amp;chat=team&amp;edit=1">Edit</a>`)
	r.put(whole, mine("hello"))
	r.typing = true
	page = r.get("/?chat=team&as=2&reply=2")
	r.Shows(page, `class=" bot"`, "Robot is typing…", "replying to “Robot: hello”", `<a href="/?as=2&amp;chat=team&amp;topic=t9">Thread</a>`, "· #deploys")
	if strings.Contains(page, "Edit</a>") {
		t.Error("Bob may edit the messages of others")
	}
	_, page = r.Send([]byte("read me"), "chat", "team", "as", "2", "reply", "2", "text", "see")
	r.Shows(page, "<blockquote>2</blockquote>", `<a href="/files/f">notes.txt text/plain; charset=utf-8</a>`)
	r.Shows(r.get("/?chat=team&as=1&edit=1"), "&lt;b&gt;hi&lt;/b&gt;\nthere</textarea>")
	_, page = r.Send(nil, "chat", "team", "edit", "1", "text", "better")
	r.Shows(page, "better", "</time> edited")
	_, page = r.Site.Post("/react", url.Values{"chat": {"team"}, "message": {"1"}, "emoji": {"🔥"}})
	r.Shows(page, `<p class="reactions">1🔥1 </p>`)
	_, page = r.Site.Post("/press", url.Values{"chat": {"team"}, "message": {"1"}, "button": {"a"}})
	r.Shows(page, `<p class="reactions">1a1 </p>`, `<button name="button" value="a">Yes</button> <button name="button" value="b">No</button>`)
	before := len(r.Messages(whole))
	r.Send(nil, "chat", "team", "text", "")
	if len(r.Messages(whole)) != before {
		t.Error("an empty message was sent")
	}
}

func mine(text string) page.Message {
	return page.Message{From: robot, Text: text, Time: time.Unix(0, 0), Branch: "t9", Thread: "deploys"}
}

func TestPage_Threads(t *testing.T) {
	r := start(t)
	r.Send(nil, "chat", "team", "topic", "t1", "text", "ship it")
	r.Shows(r.get("/?chat=team&topic=t1"), "ship it", `<a href="/?as=1&amp;chat=team">#all</a>`, `aria-current="page">#deploys`)
	if strings.Contains(r.get("/?chat=team"), "ship it") {
		t.Error("the chat shows what is in its thread")
	}
	r.Shows(r.get("/?chat=team&topic=new"), `aria-current="page">#new thread`)
	page := r.get("/?chat=forum&as=1") // has only threads, and Alice is not a member
	r.Shows(page, `aria-current="page">#first`, `aria-current="true">Bob`)
	if strings.Contains(page, "#all") {
		t.Error("a chat that has only threads shows a view outside threads")
	}
}

func TestPage_Files(t *testing.T) {
	r := start(t)
	_, _, header := r.Do("GET", "/files/picture", nil)
	if header.Get("Content-Type") != "image/png" || header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a picture comes with %v", header)
	}
	_, _, header = r.Do("GET", "/files/page", nil)
	if header.Get("Content-Type") != "application/octet-stream" || header.Get("Content-Disposition") != `attachment; filename="a\".html"` {
		t.Errorf("a page that was sent as a file comes with %v", header)
	}
	if status, _, _ := r.Do("GET", "/files/other", nil); status != http.StatusNotFound {
		t.Errorf("an unknown file: %d", status)
	}
}

func TestPage_RefusesInvalidForms(t *testing.T) {
	r := start(t)
	if status, _, _ := r.Do("GET", "/?chat=other", nil); status != http.StatusNotFound {
		t.Errorf("an unknown chat: %d", status)
	}
	for _, fields := range [][]string{{"chat", "other", "text", "x"}, {"chat", "team", "edit", "99", "text", "x"}, {"chat", "team", "text", "refuse me"}} {
		if status, body := r.Send(nil, fields...); status < 400 || status >= 500 {
			t.Errorf("%v: %d %s", fields, status, body)
		}
	}
	for _, form := range []string{"multipart/form-data; boundary=x", "text/plain"} {
		if status, _, _ := r.Do("POST", "/send", strings.NewReader("nonsense"), "Content-Type", form); status != http.StatusBadRequest {
			t.Errorf("an invalid form: %d", status)
		}
	}
	for header, value := range map[string]string{"Origin": "https://evil.example", "Host": "evil.example"} {
		if status, _, _ := r.Do("POST", "/send", strings.NewReader("chat=team&text=x"), header, value); status != http.StatusForbidden {
			t.Errorf("%s %s: %d", header, value, status)
		}
	}
	if _, body, _ := r.Do("POST", "/api/x", nil, "Origin", "https://evil.example", "Host", "anywhere.example"); body != "the API at anywhere.example" {
		t.Errorf("the API: %s", body)
	}
	for addr, isLocal := range map[string]bool{"127.0.0.1:0": true, "localhost:80": true, "[::1]:80": true, "0.0.0.0:0": false, ":0": false, "example.org:80": false, "nonsense": false} {
		if err := page.CheckLocal(addr); (err == nil) != isLocal {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestPage_Events(t *testing.T) {
	r := start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.Client.Do(req)
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
	r.put(whole, mine("x"))
	changed()
}
