package slackpage

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"arizuko/pkg/testkit/fakes/internal/pagetest"
	"arizuko/pkg/testkit/fakes/slack"
)

func TestMain(m *testing.M) {
	// The browser's and the default client's connections close at their own pace.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { http.DefaultClient.CloseIdleConnections() }))
}

type fixture struct {
	*pagetest.Site
	t  *testing.T
	sl *slack.Server
}

func start(t *testing.T) fixture {
	t.Helper()
	sl := slack.New(slack.Options{})
	return fixture{Site: pagetest.Open(t, New(sl)), t: t, sl: sl}
}

// place finds one of the ready-made conversations by its kind.
func (r fixture) place(kind string) slack.Place {
	r.t.Helper()
	for _, c := range r.sl.Channels() {
		if c.Kind == kind {
			return r.sl.Place(c.ID, "")
		}
	}
	r.t.Fatalf("no %s", kind)
	return slack.Place{}
}

func (r fixture) bot(method string, fields url.Values) {
	r.t.Helper()
	fields.Set("token", r.sl.BotToken())
	if _, body := r.Post("/api/"+method, fields); !strings.Contains(body, `"ok":true`) {
		r.t.Fatalf("%s: %s", method, body)
	}
}

func TestPage_Conversation(t *testing.T) {
	r := start(t)
	team := r.place(slack.Public)
	chat := team.ChannelID
	_, page := r.Send(nil, "chat", chat, "text", "@arizuko <b>hello</b>")
	r.Shows(page, "@arizuko &lt;b&gt;hello&lt;/b&gt;")
	asked := team.Messages()[0]
	if asked.Text != r.sl.Me().Mention()+" &lt;b&gt;hello&lt;/b&gt;" {
		t.Errorf("on the wire it is %q", asked.Text)
	}

	r.bot("chat.postMessage", url.Values{"channel": {chat}, "thread_ts": {asked.TS}, "text": {"see <https://x.y|*here*> &amp; <#" + chat + "|team>"}})
	r.bot("reactions.add", url.Values{"channel": {chat}, "timestamp": {asked.TS}, "name": {"eyes"}})
	_, page = r.Get("/?chat=" + chat)
	r.Shows(page, "replies in the thread: 1")
	r.Shows(page, ":eyes:")
	r.Hides(page, "x.y")
	inThread := "/?chat=" + chat + "&topic=" + asked.TS
	_, page = r.Get(inThread)
	r.Shows(page, "see *here* (https://x.y) &amp; #team")
	r.Shows(page, "#@arizuko &lt;b&gt;hello&lt;/b…")

	bob := team.Members()[0]
	for _, u := range team.Members() {
		if u.RealName == "Bob" {
			bob = u
		}
	}
	r.Send([]byte("read me"), "chat", chat, "as", bob.ID, "reply", asked.TS, "text", "see")
	last := team.Messages()[2]
	if len(last.Files) != 1 || last.Text != "see" || last.ThreadTS != asked.TS || last.User != bob.ID {
		t.Errorf("sent %+v", last)
	}
	if status, body := r.Get("/files/" + last.Files[0].ID); status != 200 || body != "read me" {
		t.Errorf("the file: %d %s", status, body)
	}
	_, page = r.Send(nil, "chat", chat, "edit", asked.TS, "text", "better")
	r.Shows(page, "better")
	react := func(emoji string) string {
		_, page := r.Post("/react", url.Values{"chat": {chat}, "message": {asked.TS}, "emoji": {emoji}})
		return page
	}
	r.Shows(react("🔥"), `:eyes: 🔥`)
	r.Hides(react(""), `:eyes: 🔥`)
}

func TestPage_PanesAndCommands(t *testing.T) {
	r := start(t)
	dm := r.place(slack.DM)
	pane := dm.Thread(dm.Messages()[0].TS)
	r.Send(nil, "chat", dm.ChannelID, "topic", pane.ThreadTS, "text", "/me waves")
	if m := pane.Messages()[1]; m.Subtype != "me_message" || m.Text != "waves" {
		t.Errorf("sent %+v", m)
	}
	r.bot("assistant.threads.setStatus", url.Values{"channel_id": {dm.ChannelID}, "thread_ts": {pane.ThreadTS}, "status": {"thinks"}})
	address := "/?chat=" + dm.ChannelID + "&topic=" + pane.ThreadTS
	_, page := r.Get(address)
	r.Shows(page, "arizuko is typing…")
	r.bot("chat.postMessage", url.Values{"channel": {dm.ChannelID}, "thread_ts": {pane.ThreadTS}, "text": {"hello"}})
	_, page = r.Get(address)
	r.Hides(page, "is typing…")
	if status, _ := r.Send(nil, "chat", dm.ChannelID, "topic", pane.ThreadTS, "text", "/arizuko new"); status != http.StatusBadRequest {
		t.Errorf("a command in a thread: %d", status)
	}
	if status, _ := r.Send(nil, "chat", dm.ChannelID, "text", "/arizuko new"); status != http.StatusOK || r.sl.Undelivered() != 1 {
		t.Errorf("a command: %d, and %d were not delivered, without an adapter", status, r.sl.Undelivered())
	}
	alice := dm.Members()[0].ID
	r.bot("chat.postEphemeral", url.Values{"channel": {dm.ChannelID}, "user": {alice}, "text": {"psst"}})
	_, page = r.Get("/?chat=" + dm.ChannelID)
	r.Shows(page, "only one user sees this")
}

func TestPage_RefusesInvalidForms(t *testing.T) {
	r := start(t)
	team := r.place(slack.Public).ChannelID
	if status, _ := r.Get("/?chat=C404"); status != http.StatusNotFound {
		t.Errorf("an unknown chat: %d", status)
	}
	for _, fields := range [][]string{{"chat", "C404", "text", "x"}, {"chat", team, "reply", "99", "text", "x"},
		{"chat", team, "edit", "99", "text", "x"}, {"chat", team, "topic", "7", "text", "x"}} {
		if status, _ := r.Send(nil, fields...); status < 400 || status >= 500 {
			t.Errorf("%v: %d", fields, status)
		}
	}
	if status, _ := r.Get("/files/nonsense"); status != http.StatusNotFound {
		t.Errorf("an unknown file: %d", status)
	}
}
