package discordpage

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/pagetest"
)

type fixture struct {
	*pagetest.Site
	t  *testing.T
	dc *discord.Server
}

func start(t *testing.T) fixture {
	t.Helper()
	dc := discord.New(discord.Options{})
	return fixture{Site: pagetest.Open(t, New(dc)), t: t, dc: dc}
}

// channel finds one of the ready-made channels, or the private one by its user.
func (r fixture) channel(name string) discord.Place {
	r.t.Helper()
	for _, ch := range r.dc.Channels() {
		if ch.Name == name || ch.Type == discord.Private && ch.Recipients[0].Name() == name {
			return r.dc.Place(ch.ID)
		}
	}
	r.t.Fatalf("no channel %s", name)
	return discord.Place{}
}

func (r fixture) bot(method, path, body string) {
	r.t.Helper()
	status, answer, _ := r.Do(method, "/api/v9/channels/"+path, strings.NewReader(body), "Authorization", "Bot "+r.dc.Token(), "Content-Type", "application/json")
	if status != http.StatusOK && status != http.StatusNoContent {
		r.t.Fatalf("%s: %d %s", path, status, answer)
	}
}

func TestPage_Conversation(t *testing.T) {
	r := start(t)
	general := r.channel("general")
	id := general.ChannelID
	_, page := r.Send(nil, "chat", id, "text", "@Arizuko <b>hello</b>")
	r.Shows(page, "@Arizuko &lt;b&gt;hello&lt;/b&gt;")
	asked := general.Messages()[0]
	if asked.Content != r.dc.Me().Mention()+" <b>hello</b>" || len(asked.Mentions) != 1 {
		t.Errorf("the channel has %+v", asked)
	}
	r.bot("POST", id+"/typing", "")
	_, page = r.Get("/?chat=" + id)
	r.Shows(page, "Arizuko is typing…")
	r.bot("POST", id+"/messages", `{"content":"hi <@`+asked.Author.ID+`> <@7>","message_reference":{"message_id":"`+asked.ID+`"}}`)
	r.bot("PUT", id+"/messages/"+asked.ID+"/reactions/%F0%9F%A4%9D/@me", "")
	_, page = r.Get("/?chat=" + id)
	r.Shows(page, "hi @Alice @unknown-user", "<blockquote>Alice: @Arizuko", "🤝")
	if strings.Contains(page, "typing…") {
		t.Error("still typing after the reply")
	}

	answer := general.Messages()[1].ID
	bob := general.Members()[2].ID
	r.Send([]byte("read me"), "chat", id, "as", bob, "reply", answer, "text", "see")
	last := general.Messages()[2]
	if len(last.Attachments) != 1 || last.Content != "see" || last.Reference == nil || last.Author.Name() != "Bob" {
		t.Fatalf("sent %+v", last)
	}
	if status, body := r.Get("/files/" + last.Attachments[0].ID); status != 200 || body != "read me" {
		t.Errorf("the file: %d %s", status, body)
	}
	_, page = r.Send(nil, "chat", id, "edit", asked.ID, "text", "@Arizuko better")
	r.Shows(page, "@Arizuko better", "edited")
	_, page = r.Post("/react", url.Values{"chat": {id}, "message": {answer}, "emoji": {"🔥"}})
	r.Shows(page, `<p class="reactions">🔥 </p>`)
	_, page = r.Post("/react", url.Values{"chat": {id}, "message": {answer}, "emoji": {""}})
	if strings.Contains(page, `<p class="reactions">🔥`) {
		t.Error("the reaction is still there")
	}
}

func TestPage_Threads(t *testing.T) {
	r := start(t)
	operations := r.channel("operations")
	deploys := operations.Threads()[0]
	r.Send(nil, "chat", operations.ChannelID, "topic", deploys.ID, "text", "ship it")
	_, page := r.Get("/?chat=" + operations.ChannelID + "&topic=" + deploys.ID)
	r.Shows(page, "ship it", "#incidents", "#channel")
	_, page = r.Get("/?chat=" + operations.ChannelID)
	r.Shows(page, "started the thread deploys")
	if strings.Contains(page, "ship it") {
		t.Error("the channel shows messages of its thread")
	}

	general := r.channel("general")
	r.Send(nil, "chat", general.ChannelID, "text", "a topic")
	topic := general.Messages()[0].ID
	_, page = r.Get("/?chat=" + general.ChannelID)
	r.Shows(page, "topic="+topic+`">Thread</a>`)
	_, page = r.Get("/?chat=" + general.ChannelID + "&topic=" + topic)
	r.Shows(page, "#new thread")
	_, page = r.Send(nil, "chat", general.ChannelID, "topic", topic, "text", "more on it")
	r.Shows(page, "more on it", "started this thread", "#Thread of Alice")

	_, page = r.Get("/?chat=" + r.channel("questions").ChannelID)
	r.Shows(page, "#How does this work?", "Open the page as Alice")
	_, page = r.Get("/?chat=" + r.channel("Alice").ChannelID)
	if r.Shows(page, ">Alice</a>"); strings.Contains(page, ">Bob</a>") {
		t.Error("Bob may write in Alice's private channel")
	}
}

func TestPage_Notes(t *testing.T) {
	r := start(t)
	general := r.channel("general")
	alice := general.Members()[0]
	general.Sticker(alice, "wave")
	poll := general.Poll(alice, "Lunch?", "yes", "no")
	general.Vote(alice, poll.ID, 2, true)
	general.EndPoll(poll.ID)
	general.Attach(alice, "", discord.File{Name: "a.png", Data: []byte("x")})
	r.bot("POST", general.ChannelID+"/messages", `{"embeds":[{"title":"Weather","description":"fine"}]}`)
	_, page := r.Get("/?chat=" + general.ChannelID)
	r.Shows(page, "sticker wave", "poll: Lunch? · yes (0) · no (1)", "the poll has ended", `<img src="/files/`, "Weather fine")
}

func TestPage_RefusesInvalidForms(t *testing.T) {
	r := start(t)
	general := r.channel("general").ChannelID
	for _, fields := range [][]string{{"chat", "1", "text", "x"}, {"chat", general, "reply", "99", "text", "x"}, {"chat", general, "edit", "99", "text", "x"},
		{"chat", general, "topic", "7", "text", "x"}, {"chat", general, "topic", "7", "edit", "7", "text", "x"}, {"chat", r.channel("Alice").ChannelID, "topic", "7", "text", "x"}} {
		if status, _ := r.Send(nil, fields...); status < 400 || status >= 500 {
			t.Errorf("%v: %d", fields, status)
		}
	}
	if status, _ := r.Post("/react", url.Values{"chat": {general}, "topic": {"7"}, "message": {"7"}, "emoji": {"🔥"}}); status != http.StatusBadRequest {
		t.Errorf("a reaction in no thread: %d", status)
	}
	if status, _ := r.Get("/files/nonsense"); status != http.StatusNotFound {
		t.Errorf("an unknown file: %d", status)
	}
}
