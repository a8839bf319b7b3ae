package clients

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/slack"
)

// onSlack is a bot of Bolt in a DM and a channel.
type onSlack struct {
	*bot
	s          *slack.Server
	alice, bob slack.User
	dm, team   slack.Place
}

// startSlack starts the bot in Socket Mode, or for the Events API.
func startSlack(t *testing.T, socketMode bool, o slack.Options) *onSlack {
	t.Helper()
	o.Commands = []string{"/ask", "/quick"}
	s := slack.New(o)
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &onSlack{s: s, alice: s.User("Alice", "alice"), bob: s.User("Bob", "bob")}
	w.dm, w.team = s.DM(w.alice), s.Channel("team", w.alice, w.bob)
	app := "SECRET=" + s.SigningSecret()
	if socketMode {
		app = "APP_TOKEN=" + s.AppToken()
	}
	w.bot = startBot(t, "slack.mjs", "TOKEN="+s.BotToken(), "BASE="+base, app)
	return w
}

// ask makes Alice tell the bot in a place to do a step, and returns how it went.
func (w *onSlack) ask(t *testing.T, in slack.Place, text string) line {
	t.Helper()
	step, _, _ := strings.Cut(text, " ")
	in.Say(w.alice, text)
	return w.wait(t, step)
}

// get is ask for a step that must succeed.
func (w *onSlack) get(t *testing.T, in slack.Place, text string) line {
	t.Helper()
	l := w.ask(t, in, text)
	if l["error"] != nil {
		t.Fatalf("%s failed: %s", text, l.at("error"))
	}
	return l
}

func (w *onSlack) refused(t *testing.T, in slack.Place, text, code string) {
	t.Helper()
	if l := w.ask(t, in, text); l.at("error.error") != code {
		t.Errorf("%s: %v, want error %s", text, l, code)
	}
}

// message is one of a place; it fails the test if there is none.
func (w *onSlack) message(t *testing.T, in slack.Place, ts string) slack.Message {
	t.Helper()
	all := in.Messages()
	i := slices.IndexFunc(all, func(m slack.Message) bool { return m.TS == ts })
	if i < 0 {
		t.Fatalf("no message %s in %+v", ts, all)
	}
	return all[i]
}

func TestSlack_Bolt_MeetsThePlatform(t *testing.T) {
	t.Parallel()
	// Slack's own delays are minutes.
	w := startSlack(t, true, slack.Options{RetryDelays: []time.Duration{0, 2 * time.Second, 10 * time.Second}})
	w.done(t, "connected").want(t, "user", slack.DefaultBotName, "team", slack.DefaultTeam, "id", w.s.Me().BotID)
	until(t, w.s.WaitConnected)
	for _, test := range []behaviour{
		{"messages", w.testMessages}, {"edits", w.testEdits}, {"deletions", w.testDeletions}, {"history", w.testHistory},
		{"files", w.testFiles}, {"buttons", w.testButtons}, {"reactions", w.testReactions}, {"commands", w.testCommands},
		{"conversations", w.testConversations}, {"texts", w.testTexts},
		{"flood waits and 5xx", w.testErrors}, {"socket", w.testSocket}, {"token", w.testToken},
	} {
		t.Run(test.name, test.run)
	}
}

func TestSlack_BoltWithEventsAPI_MeetsThePlatform(t *testing.T) {
	t.Parallel()
	w := startSlack(t, false, slack.Options{AckTimeout: maxWait})
	url := "http://127.0.0.1:" + w.done(t, "connected").at("port") + "/slack/events"
	until(t, func(ctx context.Context) error { return w.s.SetEventsURL(ctx, url) })
	for _, test := range []behaviour{
		{"messages", w.testMessages}, {"edits", w.testEdits}, {"files", w.testFiles}, {"buttons", w.testButtons}, {"commands", w.testCommands},
	} {
		t.Run(test.name, test.run)
	}
}

// Bolt's retries get more posts through than Slack's rates allow at once.
func TestSlack_BoltAboveTheRates_AllArrive(t *testing.T) {
	t.Parallel()
	w := startSlack(t, true, slack.Options{RateLimits: true})
	w.done(t, "connected")
	until(t, w.s.WaitConnected)
	w.get(t, w.team, "burst 7")
	refused := 0
	for _, c := range w.s.Calls() {
		if c.Error == "ratelimited" {
			refused++
		}
	}
	if all := w.team.Messages(); len(all) != 8 || refused == 0 {
		t.Errorf("%d calls were refused, messages %+v", refused, all)
	}
}

func (w *onSlack) testMessages(t *testing.T) {
	m := w.team.Say(w.alice, w.s.Me().Mention()+" hello!")
	w.done(t, "message").want(t, "ts", m.TS, "user", w.alice.ID, "kind", "channel")
	l := w.done(t, "mention")
	l.want(t, "thread", m.TS, "text", "hello "+w.alice.Mention())
	w.dm.Say(w.alice, "hi there")
	w.done(t, "message").want(t, "kind", "im")
	if l := w.get(t, w.team, "say *hi* &amp; &lt;b&gt;"); w.message(t, w.team, l.at("ts")).Text != "*hi* &amp; &lt;b&gt;" {
		t.Errorf("%v", l)
	}
	asked := w.team.Say(w.alice, "answer yes")
	w.done(t, "answer").want(t, "thread", asked.TS)
	w.refused(t, w.team, "answerTo 1.000001", "thread_not_found")
	if l := w.get(t, w.team, "broadcast to all"); w.message(t, w.team, l.at("ts")).Subtype != "thread_broadcast" {
		t.Errorf("%v", l)
	}
	w.team.Reply(w.bob, asked.TS, "in the thread")
	w.done(t, "message").want(t, "thread", asked.TS, "user", w.bob.ID)
	w.get(t, w.team, "secret psst")
	if all := w.team.Ephemeral(); len(all) != 1 || all[0].Text != "psst" {
		t.Errorf("%+v", all)
	}
	if l := w.get(t, w.team, "marked"); w.message(t, w.team, l.at("ts")).Metadata == nil {
		t.Errorf("%v", l)
	}
}

func (w *onSlack) testEdits(t *testing.T) {
	l := w.get(t, w.team, "edit final")
	w.done(t, "message_changed").want(t, "text", "final")
	if m := w.message(t, w.team, l.at("ts")); m.Text != "final" || m.Edited == nil {
		t.Errorf("%+v", m)
	}
	mine := w.team.Say(w.alice, "mine alone")
	w.done(t, "message")
	w.refused(t, w.team, "editTo "+mine.TS, "cant_update_message")
	w.refused(t, w.team, "editTo 1.000001", "message_not_found")
	w.refused(t, w.team, "longEdit "+l.at("ts"), "msg_too_long")
	w.team.Edit(w.alice, mine.TS, "mine still")
	w.done(t, "message_changed").want(t, "text", "mine still", "event.previous_message.text", "mine alone")
}

func (w *onSlack) testDeletions(t *testing.T) {
	l := w.get(t, w.team, "delete")
	w.done(t, "message_deleted").want(t, "deleted", l.at("ts"))
	w.refused(t, w.team, "deleteTo "+l.at("ts"), "message_not_found")
	mine := w.team.Say(w.alice, "mine alone")
	w.done(t, "message")
	w.refused(t, w.team, "deleteTo "+mine.TS, "cant_delete_message")
	w.team.Delete(w.alice, mine.TS)
	w.done(t, "message_deleted").want(t, "deleted", mine.TS)
}

func (w *onSlack) testHistory(t *testing.T) {
	side := w.s.Channel("side", w.alice, w.bob)
	root := side.Say(w.bob, "number 1")
	side.Say(w.bob, "number 2")
	side.Reply(w.bob, root.TS, "reply 1")
	for range 3 {
		w.done(t, "message")
	}
	w.get(t, side, "history").want(t, "texts", `["history","number 2","number 1"]`)
	w.get(t, side, "pages").want(t, "count", "4")
	w.get(t, side, "replies "+root.TS).want(t, "texts", `["number 1","reply 1"]`)
	w.refused(t, side, "replies 1.000001", "thread_not_found")
}

func (w *onSlack) testFiles(t *testing.T) {
	asked := w.team.Say(w.alice, "file some text")
	w.done(t, "file").want(t, "name", "note.txt", "type", "text/plain", "text", "some text", "thread", asked.TS)
	w.team.Share(w.alice, slack.Attachment{Name: "list.txt", Data: []byte("eggs")}, "read")
	w.done(t, "read").want(t, "text", "eggs", "page", "<!DOCTYPE html>")
	if l := w.ask(t, w.team, "empty"); l["error"] == nil {
		t.Errorf("%v", l)
	}
}

func (w *onSlack) testButtons(t *testing.T) {
	l := w.get(t, w.team, "buttons")
	w.team.PressButton(w.alice, l.at("ts"), "no", "no!")
	w.done(t, "press").want(t, "value", "no!", "text", "said no")
	w.team.PressButton(w.alice, l.at("ts"), "yes", "yes!")
	w.done(t, "press").want(t, "value", "yes!", "user", w.alice.ID, "ts", l.at("ts"))
	if m := w.message(t, w.team, l.at("ts")); m.Text != "chosen: yes" || m.Blocks != nil {
		t.Errorf("%+v", m)
	}
	w.done(t, "message_changed").want(t, "text", "chosen: yes")
}

func (w *onSlack) testReactions(t *testing.T) {
	m := w.team.Say(w.alice, "react thumbsup")
	w.done(t, "react")
	w.refused(t, w.team, "react :thumbsup:", "invalid_name")
	w.refused(t, w.team, "reactTwice", "already_reacted")
	w.refused(t, w.team, "unreact", "no_reaction")
	w.team.React(w.bob, m.TS, "tada")
	w.done(t, "reaction").want(t, "name", "tada", "user", w.bob.ID, "ts", m.TS)
	w.get(t, w.team, "reactions "+m.TS).want(t, "names", `["thumbsup","tada"]`)
	w.team.Unreact(w.bob, m.TS, "tada")
	w.done(t, "reaction removed").want(t, "name", "tada")
}

func (w *onSlack) testCommands(t *testing.T) {
	w.team.Command(w.bob, "/ask", "why")
	w.done(t, "command").want(t, "text", "why", "user", w.bob.ID)
	until(t, func(ctx context.Context) error {
		return w.s.Until(ctx, func() bool {
			all := w.team.Messages()
			return all[len(all)-1].Text == "asked: why"
		})
	})
	w.team.Command(w.bob, "/quick", "why")
	until(t, func(ctx context.Context) error {
		return w.s.Until(ctx, func() bool {
			all := w.team.Ephemeral()
			return len(all) > 0 && all[len(all)-1].Text == "quick: why"
		})
	})
}

func (w *onSlack) testConversations(t *testing.T) {
	w.s.PrivateChannel("secrets", w.alice)
	w.s.PrivateChannel("hidden", w.alice)
	w.get(t, w.team, "channels").want(t, "names", `["hidden","secrets","side","team"]`)
	w.get(t, w.team, "members").want(t, "name", "Alice", "info", "team")
	w.refused(t, w.team, "stranger U1", "user_not_found")
	carol := w.s.User("Carol", "carol")
	w.team.Join(carol)
	w.done(t, "joined").want(t, "user", carol.ID)
	w.team.Rename(w.alice, "crew")
	w.done(t, "renamed").want(t, "name", "crew")
	open := w.s.ChannelWithoutBot("open", w.alice)
	w.refused(t, w.team, "to "+open.ChannelID, "not_in_channel")
	w.refused(t, w.team, "to C0000000000", "channel_not_found")
}

func (w *onSlack) testTexts(t *testing.T) {
	w.get(t, w.team, "long 4000").want(t, "warnings", "")
	w.get(t, w.team, "long 4001").want(t, "warnings", `["message_truncated"]`)
	w.refused(t, w.team, "long 40001", "msg_too_long")
	w.refused(t, w.team, "long 0", "no_text")
	w.get(t, w.team, "blocks 50")
	w.refused(t, w.team, "blocks 51", "invalid_blocks")
	w.refused(t, w.team, "unknown", "unknown_method")
}

func (w *onSlack) testErrors(t *testing.T) {
	w.s.InjectFault(slack.Fault{Method: "chat.postMessage", RetryAfter: 1})
	w.get(t, w.team, "say after the wait")
	w.s.InjectFault(slack.Fault{Method: "chat.postMessage", RetryAfter: 30})
	w.ask(t, w.team, "once flood").want(t, "error.code", "slack_webapi_rate_limited_error", "error.retryAfter", "30")
	w.s.InjectFault(slack.Fault{Method: "chat.postMessage", Status: 502})
	w.ask(t, w.team, "once never").want(t, "error.code", "slack_webapi_http_error", "error.status", "502")
	w.s.InjectFault(slack.Fault{Method: "chat.postMessage", Status: 502})
	w.get(t, w.team, "say after an error of the server")
	w.s.InjectFault(slack.Fault{Method: "chat.postMessage", Error: "internal_error"})
	w.refused(t, w.team, "say never", "internal_error")
}

func (w *onSlack) testSocket(t *testing.T) {
	for _, disturb := range []behaviour{
		{"refreshed", func(*testing.T) { w.s.Disconnect("refresh_requested") }},
		{"broken", func(*testing.T) { w.s.DropSockets() }},
	} {
		t.Run(disturb.name, func(t *testing.T) {
			before := w.s.OpenedSockets()
			disturb.run(t)
			w.team.Say(w.bob, "said while "+disturb.name)
			w.done(t, "message").want(t, "text", "said while "+disturb.name)
			until(t, func(ctx context.Context) error {
				return w.s.Until(ctx, func() bool { return w.s.OpenedSockets() > before })
			})
			until(t, w.s.WaitConfirmed)
		})
	}
	w.none(t, "message")
}

func (w *onSlack) testToken(t *testing.T) {
	w.refused(t, w.team, "token xoxb-wrong", "invalid_auth")
	w.refused(t, w.team, "token "+w.s.AppToken(), "not_allowed_token_type")
	w.s.Revoke(w.s.BotToken(), "token_revoked") // it breaks the socket too, and the bot connects again
	w.refused(t, w.team, "say never", "token_revoked")
}
