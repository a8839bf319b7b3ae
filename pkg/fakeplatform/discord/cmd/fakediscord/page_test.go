package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"arizuko/pkg/fakeplatform/discord"
)

type rig struct {
	t    *testing.T
	dc   *discord.Server
	site *httptest.Server
}

func start(t *testing.T) rig {
	t.Helper()
	dc := discord.New(discord.Options{})
	site := httptest.NewServer(newPage(dc))
	t.Cleanup(site.Close)
	return rig{t: t, dc: dc, site: site}
}

// channel finds one of the ready-made channels, or the private one by its user.
func (r rig) channel(name string) discord.Place {
	r.t.Helper()
	for _, ch := range r.dc.Channels() {
		if ch.Name == name || ch.Type == discord.Private && ch.Recipients[0].Name() == name {
			return r.dc.Place(ch.ID)
		}
	}
	r.t.Fatalf("no channel %s", name)
	return discord.Place{}
}

func (r rig) do(method, path string, body io.Reader, header ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.site.URL+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.site.Client().Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all)
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
	return r.do("POST", "/send", &body, "Content-Type", form.FormDataContentType())
}

func (r rig) react(fields url.Values) (int, string) {
	r.t.Helper()
	return r.do("POST", "/react", strings.NewReader(fields.Encode()), "Content-Type", "application/x-www-form-urlencoded")
}

func (r rig) bot(method, path, body string) {
	r.t.Helper()
	status, answer := r.do(method, "/api/v9/channels/"+path, strings.NewReader(body), "Authorization", "Bot "+r.dc.Token(), "Content-Type", "application/json")
	if status != http.StatusOK && status != http.StatusNoContent {
		r.t.Fatalf("%s: %d %s", path, status, answer)
	}
}

func (r rig) shows(page string, want ...string) {
	r.t.Helper()
	for _, w := range want {
		if !strings.Contains(page, w) {
			r.t.Errorf("%q is not in the page:\n%s", w, page)
		}
	}
}

func TestConversation(t *testing.T) {
	r := start(t)
	general := r.channel("general")
	id := general.ChannelID
	_, page := r.send(nil, "chat", id, "text", "@Arizuko <b>hello</b>")
	r.shows(page, "@Arizuko &lt;b&gt;hello&lt;/b&gt;")
	asked := general.Messages()[0]
	if asked.Content != r.dc.Me().Mention()+" <b>hello</b>" || len(asked.Mentions) != 1 {
		t.Errorf("the channel has %+v", asked)
	}
	r.bot("POST", id+"/typing", "")
	_, page = r.do("GET", "/?chat="+id, nil)
	r.shows(page, "Arizuko is typing…")
	r.bot("POST", id+"/messages", `{"content":"hi <@`+asked.Author.ID+`> <@7>","message_reference":{"message_id":"`+asked.ID+`"}}`)
	r.bot("PUT", id+"/messages/"+asked.ID+"/reactions/%F0%9F%A4%9D/@me", "")
	_, page = r.do("GET", "/?chat="+id, nil)
	r.shows(page, "hi @Alice @unknown-user", "<blockquote>Alice: @Arizuko", "🤝")
	if strings.Contains(page, "typing…") {
		t.Error("it types after it has answered")
	}

	answer := general.Messages()[1].ID
	bob := general.Members()[2].ID
	r.send([]byte("read me"), "chat", id, "as", bob, "reply", answer, "text", "see")
	last := general.Messages()[2]
	if len(last.Attachments) != 1 || last.Content != "see" || last.Reference == nil || last.Author.Name() != "Bob" {
		t.Fatalf("sent %+v", last)
	}
	if status, body := r.do("GET", "/files/"+last.Attachments[0].ID, nil); status != 200 || body != "read me" {
		t.Errorf("the file: %d %s", status, body)
	}
	_, page = r.send(nil, "chat", id, "edit", asked.ID, "text", "@Arizuko better")
	r.shows(page, "@Arizuko better", "edited")
	_, page = r.react(url.Values{"chat": {id}, "message": {answer}, "emoji": {"🔥"}})
	r.shows(page, `<p class="reactions">🔥 </p>`)
	_, page = r.react(url.Values{"chat": {id}, "message": {answer}, "emoji": {""}})
	if strings.Contains(page, `<p class="reactions">🔥`) {
		t.Error("the reaction is still there")
	}
}

func TestThreads(t *testing.T) {
	r := start(t)
	operations := r.channel("operations")
	deploys := operations.Threads()[0]
	r.send(nil, "chat", operations.ChannelID, "topic", deploys.ID, "text", "ship it")
	_, page := r.do("GET", "/?chat="+operations.ChannelID+"&topic="+deploys.ID, nil)
	r.shows(page, "ship it", "#incidents", "#channel")
	_, page = r.do("GET", "/?chat="+operations.ChannelID, nil)
	r.shows(page, "started the thread deploys")
	if strings.Contains(page, "ship it") {
		t.Error("the channel shows what is in its thread")
	}

	general := r.channel("general")
	r.send(nil, "chat", general.ChannelID, "text", "a topic")
	topic := general.Messages()[0].ID
	_, page = r.do("GET", "/?chat="+general.ChannelID, nil)
	r.shows(page, "topic="+topic+`">Thread</a>`)
	_, page = r.do("GET", "/?chat="+general.ChannelID+"&topic="+topic, nil)
	r.shows(page, "#new thread")
	_, page = r.send(nil, "chat", general.ChannelID, "topic", topic, "text", "more on it")
	r.shows(page, "more on it", "started this thread", "#Thread of Alice")

	_, page = r.do("GET", "/?chat="+r.channel("questions").ChannelID, nil)
	r.shows(page, "#How does this work?", "Open the page as Alice")
	_, page = r.do("GET", "/?chat="+r.channel("Alice").ChannelID, nil)
	if r.shows(page, ">Alice</a>"); strings.Contains(page, ">Bob</a>") {
		t.Error("Bob may write in Alice's private channel")
	}
}

func TestNotes(t *testing.T) {
	r := start(t)
	general := r.channel("general")
	alice := general.Members()[0]
	general.Sticker(alice, "wave")
	poll := general.Poll(alice, "Lunch?", "yes", "no")
	general.Vote(alice, poll.ID, 2, true)
	general.EndPoll(poll.ID)
	general.Attach(alice, "", discord.File{Name: "a.png", Data: []byte("x")})
	r.bot("POST", general.ChannelID+"/messages", `{"embeds":[{"title":"Weather","description":"fine"}]}`)
	_, page := r.do("GET", "/?chat="+general.ChannelID, nil)
	r.shows(page, "sticker wave", "poll: Lunch? · yes (0) · no (1)", "the poll has ended", `<img src="/files/`, "Weather fine")
}

func TestRefusals(t *testing.T) {
	r := start(t)
	general := r.channel("general").ChannelID
	for _, fields := range [][]string{{"chat", "1", "text", "x"}, {"chat", general, "reply", "99", "text", "x"}, {"chat", general, "edit", "99", "text", "x"},
		{"chat", general, "topic", "7", "text", "x"}, {"chat", general, "topic", "7", "edit", "7", "text", "x"}, {"chat", r.channel("Alice").ChannelID, "topic", "7", "text", "x"}} {
		if status, _ := r.send(nil, fields...); status < 400 || status >= 500 {
			t.Errorf("%v: %d", fields, status)
		}
	}
	if status, _ := r.react(url.Values{"chat": {general}, "topic": {"7"}, "message": {"7"}, "emoji": {"🔥"}}); status != http.StatusBadRequest {
		t.Errorf("a reaction in no thread: %d", status)
	}
	if status, _ := r.do("GET", "/files/nonsense", nil); status != http.StatusNotFound {
		t.Errorf("an unknown file: %d", status)
	}
}

func TestRun(t *testing.T) {
	for _, args := range [][]string{{"-addr", "0.0.0.0:0"}, {"-addr", "nonsense"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("it takes %v", args)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, told := io.Pipe()
	done := make(chan error)
	go func() {
		done <- run(ctx, []string{"-addr", "127.0.0.1:0", "-token", "a.b.c", "-no-content", "-rates"}, told)
	}()
	lines := bufio.NewScanner(out)
	var env []string
	for len(env) < 3 && lines.Scan() {
		env = append(env, lines.Text())
	}
	if env[0] != "export DISCORD_BOT_TOKEN=a.b.c" || !strings.HasPrefix(env[1], "export DISCORD_API_URL=http://127.0.0.1:") {
		t.Errorf("printed %q", env)
	}
	resp, err := http.Get(strings.TrimPrefix(env[1], "export DISCORD_API_URL=") + "/api/v9/gateway")
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("X-RateLimit-Limit") == "" {
		t.Errorf("the API: %v, %v", resp, err)
	}
	resp.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
