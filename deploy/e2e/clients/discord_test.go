package clients

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
)

// onDiscord is a bot of discord.js in a DM and in two channels of a guild.
type onDiscord struct {
	*bot
	s              *discord.Server
	alice, bob     discord.User
	guild          discord.Guild
	dm, team, side discord.Place
}

func startDiscord(t *testing.T, o discord.Options, env ...string) *onDiscord {
	t.Helper()
	s := discord.New(o)
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &onDiscord{s: s, alice: s.User("Alice", "alice"), bob: s.User("Bob", "bob")}
	w.guild = s.Guild("Guild", w.alice, w.bob)
	w.team, w.side, w.dm = w.guild.Channel("team"), w.guild.Channel("side"), s.DM(w.alice)
	w.bot = startBot(t, "discord.mjs", append(env, "TOKEN="+s.Token(), "BASE="+base)...)
	return w
}

// ask makes Alice tell the bot in a place to do a step, and returns how it went.
func (w *onDiscord) ask(t *testing.T, in discord.Place, text string) line {
	t.Helper()
	step, _, _ := strings.Cut(text, " ")
	in.Say(w.alice, text)
	return w.wait(t, step)
}

// get is ask for a step that must succeed.
func (w *onDiscord) get(t *testing.T, in discord.Place, text string) line {
	t.Helper()
	l := w.ask(t, in, text)
	if l["error"] != nil {
		t.Fatalf("%s failed: %s", text, l.at("error"))
	}
	return l
}

func (w *onDiscord) refused(t *testing.T, in discord.Place, text, status, code string) {
	t.Helper()
	l := w.ask(t, in, text)
	if l.at("error.status") != status || l.at("error.code") != code {
		t.Errorf("%s: %v, want error %s with code %s", text, l, status, code)
	}
}

// message is one of a place; it fails the test if there is none.
func (w *onDiscord) message(t *testing.T, in discord.Place, id string) discord.Message {
	t.Helper()
	all := in.Messages()
	i := slices.IndexFunc(all, func(m discord.Message) bool { return m.ID == id })
	if i < 0 {
		t.Fatalf("no message %s in %+v", id, all)
	}
	return all[i]
}

func lastOnDiscord(in discord.Place) discord.Message {
	all := in.Messages()
	return all[len(all)-1]
}

func TestDiscord_DiscordJS_MeetsThePlatform(t *testing.T) {
	t.Parallel()
	w := startDiscord(t, discord.Options{Heartbeat: time.Second})
	w.done(t, "login")
	w.done(t, "connected").want(t, "user", discord.DefaultUsername, "guilds", `["Guild"]`)
	w.done(t, "ready")
	for _, test := range []behaviour{
		{"messages", w.testMessages}, {"edits", w.testEdits}, {"deletions", w.testDeletions}, {"history", w.testHistory},
		{"threads", w.testThreads}, {"files", w.testFiles}, {"buttons", w.testButtons}, {"reactions", w.testReactions},
		{"polls", w.testPolls}, {"commands", w.testCommands}, {"guild", w.testGuild}, {"permissions", w.testPermissions},
		{"texts", w.testTexts},
		{"flood waits and 5xx", w.testErrors}, {"gateway", w.testGateway}, {"token", w.testToken},
	} {
		t.Run(test.name, test.run)
	}
}

// discord.js keeps to the rates in the headers of answers: of many messages at once none is refused, and their order
// is kept.
func TestDiscord_DiscordJSAboveTheRates_WaitsInTime(t *testing.T) {
	t.Parallel()
	w := startDiscord(t, discord.Options{RateLimits: true})
	w.done(t, "connected")
	w.get(t, w.team, "burst 8")
	for _, c := range w.s.Calls() {
		if c.Status == http.StatusTooManyRequests {
			t.Errorf("%+v is refused", c)
		}
	}
	all := w.team.Messages()
	for n, m := range all[1:] {
		if want := fmt.Sprintf("number %d", n); m.Content != want {
			t.Errorf("message %d is %q", n, m.Content)
		}
	}
	if len(all) != 9 {
		t.Errorf("%+v", all)
	}
}

func (w *onDiscord) testMessages(t *testing.T) {
	m := w.team.Say(w.alice, w.s.Me().Mention()+" hello!")
	w.done(t, "message").want(t, "id", m.ID, "author", "Alice", "mentioned", "true", "guild", w.guild.ID)
	w.dm.Say(w.alice, "hello there")
	w.done(t, "message").want(t, "content", "hello there", "guild", "")
	if l := w.get(t, w.team, "say **hi** & <b>"); w.message(t, w.team, l.at("id")).Content != "**hi** & <b>" {
		t.Errorf("%v", l)
	}
	asked := w.team.Say(w.alice, "answer yes")
	l := w.done(t, "answer")
	if m := w.message(t, w.team, l.at("id")); m.Reference == nil || m.Reference.MessageID != asked.ID || len(m.Mentions) != 1 {
		t.Errorf("%+v", m)
	}
	w.refused(t, w.team, "answerTo 123456789012345678", "400", "50035")
	w.get(t, w.team, "answerOrSay 123456789012345678")
	w.get(t, w.team, "private hi").want(t, "channel", w.dm.ChannelID)
	w.team.Reply(w.bob, l.at("id"), "an answer to the bot")
	w.done(t, "message").want(t, "answered", l.at("id"), "mentioned", "true")
	w.team.Sticker(w.bob, "wave")
	w.done(t, "message").want(t, "stickers", `["wave"]`)
	w.get(t, w.team, "typing")
	if len(w.team.Typing()) != 1 {
		t.Errorf("%v", w.team.Typing())
	}
	w.get(t, w.team, "status")
}

func (w *onDiscord) testEdits(t *testing.T) {
	l := w.get(t, w.team, "edit final")
	if m := w.message(t, w.team, l.at("id")); m.Content != "final" || m.EditedTimestamp == nil {
		t.Errorf("%+v", m)
	}
	mine := w.team.Say(w.alice, "mine alone")
	w.done(t, "message")
	w.refused(t, w.team, "editTo "+mine.ID, "403", "50005")
	w.refused(t, w.team, "editTo 123456789012345678", "404", "10008")
	w.team.Edit(w.alice, mine.ID, "mine still")
	w.done(t, "edited").want(t, "id", mine.ID, "content", "mine still")
}

func (w *onDiscord) testDeletions(t *testing.T) {
	l := w.get(t, w.team, "delete")
	w.done(t, "deleted").want(t, "id", l.at("id"))
	w.refused(t, w.team, "deleteId "+l.at("id"), "404", "10008")
	mine := w.team.Say(w.alice, "mine alone")
	w.done(t, "message")
	w.refused(t, w.team, "deleteId "+mine.ID, "403", "50013")
	w.team.Delete(mine.ID)
	w.done(t, "deleted").want(t, "id", mine.ID)
}

func (w *onDiscord) testHistory(t *testing.T) {
	for n := range 3 {
		w.side.Say(w.bob, fmt.Sprintf("number-%d", n))
		w.done(t, "message")
	}
	w.get(t, w.side, "history").want(t, "contents", `["history","number-2","number-1"]`)
	w.refused(t, w.side, "get 123456789012345678", "404", "10008")
}

func (w *onDiscord) testThreads(t *testing.T) {
	l := w.get(t, w.team, "thread Plans")
	w.done(t, "thread opened").want(t, "name", "Plans")
	l.want(t, "channel", l.at("thread"), "parent", w.team.ChannelID, "joined", "true")
	thread := w.s.Place(l.at("thread"))
	w.get(t, thread, "say more")
	w.get(t, thread, "typing")
	thread.Archive(true, false)
	w.done(t, "thread changed").want(t, "archived", "true")
	w.get(t, w.team, "to "+thread.ChannelID) // a message takes it out of the archive
	w.done(t, "thread changed").want(t, "archived", "false")
	thread.Archive(true, true)
	w.done(t, "thread changed").want(t, "locked", "true")
	w.refused(t, w.team, "to "+thread.ChannelID, "400", "50083")
	thread.DeleteChannel()
	w.refused(t, w.team, "to "+thread.ChannelID, "404", "10003")
}

func (w *onDiscord) testFiles(t *testing.T) {
	l := w.get(t, w.team, "file some text")
	l.want(t, "content", "a note", "name", "note.txt", "text", "some text")
	w.team.Attach(w.alice, "read", discord.File{Name: "list.txt", Data: []byte("eggs")})
	w.done(t, "read").want(t, "text", "eggs", "voice", "false")
	w.team.Voice(w.alice, []byte("OggS"))
	w.done(t, "message").want(t, "files", `["voice-message.ogg"]`, "flags", "8192")
	w.refused(t, w.team, "empty", "400", "50006")
}

func (w *onDiscord) testButtons(t *testing.T) {
	l := w.get(t, w.team, "buttons")
	l.want(t, "ids", `["yes","no",null]`)
	w.team.Press(w.alice, l.at("id"), "no")
	w.done(t, "interaction").want(t, "button", "no", "user", "Alice", "message", l.at("id"))
	if m := w.message(t, w.team, l.at("id")); m.Content != "chosen: no" || len(m.Components) > 0 {
		t.Errorf("%+v", m)
	}
	w.refused(t, w.team, "sameButtons", "400", "50035")
	w.refused(t, w.team, "rows", "400", "50035")
}

func (w *onDiscord) testReactions(t *testing.T) {
	m := w.team.Say(w.alice, "react 👍")
	w.done(t, "react").want(t, "emoji", "👍")
	if got := w.team.Reactions(m.ID)[w.s.Me().ID]; !slices.Equal(got, []string{"👍"}) {
		t.Errorf("%v", got)
	}
	w.refused(t, w.team, "react nothing", "400", "10014")
	w.team.React(w.bob, m.ID, "👍")
	w.done(t, "reaction").want(t, "emoji", "👍", "message", m.ID)
	w.get(t, w.team, "unreact "+m.ID).want(t, "emoji", "👍")
	w.done(t, "reaction removed")
	w.team.Unreact(w.bob, m.ID, "👍")
	w.done(t, "reaction removed")
}

func (w *onDiscord) testPolls(t *testing.T) {
	l := w.get(t, w.team, "poll")
	l.want(t, "question", "Tea?", "answers", `["Yes","No"]`)
	w.team.Vote(w.bob, l.at("id"), 1, true)
	w.done(t, "vote").want(t, "answer", "1", "user", w.bob.ID)
	w.get(t, w.team, "endPoll "+l.at("id")).want(t, "voters", `["Bob"]`)
	w.refused(t, w.team, "longPoll", "400", "50035")
}

func (w *onDiscord) testCommands(t *testing.T) {
	w.get(t, w.team, "menu").want(t, "names", `["ask"]`)
	l := w.ask(t, w.team, "badMenu")
	if l.at("error.code") != "50035" && l.at("error.name") == "" {
		t.Errorf("%v", l)
	}
	w.team.Command(w.bob, "ask", "why")
	w.done(t, "interaction").want(t, "command", "ask", "again", "InteractionAlreadyReplied")
	if m := lastOnDiscord(w.team); m.Content != "asked: why" || m.Interaction == nil || m.Interaction.User.ID != w.bob.ID {
		t.Errorf("%+v", m)
	}
	w.dm.Command(w.alice, "ask", "in private")
	w.done(t, "interaction").want(t, "command", "ask")
}

func (w *onDiscord) testGuild(t *testing.T) {
	carol := w.s.User("Carol", "carol")
	w.guild.Join(carol)
	w.done(t, "joined").want(t, "name", "Carol")
	w.guild.Leave(carol)
	w.done(t, "left").want(t, "name", "Carol")
	w.refused(t, w.team, "to 123456789012345678", "404", "10003")
}

func (w *onDiscord) testPermissions(t *testing.T) {
	w.side.Deny(discord.SendMessages)
	w.refused(t, w.team, "to "+w.side.ChannelID, "403", "50013")
	w.side.Deny(discord.ViewChannel)
	w.refused(t, w.team, "to "+w.side.ChannelID, "403", "50001")
	w.s.Block(w.alice, true)
	w.refused(t, w.team, "private hi", "403", "50007")
	w.s.Block(w.alice, false)
}

func (w *onDiscord) testTexts(t *testing.T) {
	w.get(t, w.team, "long 2000")
	l := w.ask(t, w.team, "long 2001")
	if l.at("error.code") != "50035" || !strings.Contains(l.at("error.form"), "BASE_TYPE_MAX_LENGTH") {
		t.Errorf("%v", l)
	}
	l = w.get(t, w.team, "quiet")
	l.want(t, "flags", "4")
	for _, c := range w.s.Sent() {
		if c.MessageID == l.at("id") && len(c.Pings) > 0 {
			t.Errorf("%+v pings", c)
		}
	}
}

func (w *onDiscord) testErrors(t *testing.T) {
	w.s.InjectFault(discord.Fault{Route: discord.CreateMessage, RetryAfter: 200 * time.Millisecond})
	w.get(t, w.team, "say after the wait")
	w.s.InjectFault(discord.Fault{Route: discord.CreateMessage, RetryAfter: 200 * time.Millisecond, Global: true})
	w.get(t, w.team, "say after the wait of all")
	w.s.InjectFault(discord.Fault{Route: discord.CreateMessage, Status: 502, Times: 2})
	w.get(t, w.team, "say after errors of the server")
	w.s.InjectFault(discord.Fault{Route: discord.CreateMessage, Status: 502, Times: 4})
	if l := w.ask(t, w.team, "say never"); l.at("error.status") != "502" {
		t.Errorf("%v", l)
	}
}

func (w *onDiscord) testGateway(t *testing.T) {
	before := w.s.Gateway()
	for name, disturb := range map[string]func(){
		"broken":    w.s.Disconnect,
		"requested": w.s.RequestReconnect,
		"closed":    func() { w.s.CloseGateway(discord.CloseUnknownError, "Unknown error.") },
		"resumable": func() { w.s.InvalidateSessions(true) },
	} {
		disturb()
		w.team.Say(w.alice, "said while "+name)
		w.done(t, "resumed")
		w.done(t, "message").want(t, "content", "said while "+name)
	}
	if after := w.s.Gateway(); after.Identified != before.Identified || after.Resumed != before.Resumed+4 {
		t.Errorf("%+v, before %+v", after, before)
	}
	w.s.InvalidateSessions(false)
	w.done(t, "ready")
	w.s.SetReachable(false) // so that it cannot resume before its session is gone
	until(t, func(ctx context.Context) error { return w.s.Until(ctx, func() bool { return !w.s.Listening() }) })
	w.s.ForgetSessions()
	w.s.SetReachable(true)
	w.done(t, "ready")
	w.get(t, w.team, "say after a new session")
	w.none(t, "message")
}

func (w *onDiscord) testToken(t *testing.T) {
	w.ask(t, w.team, "login wrong").want(t, "error.code", "TokenInvalid")
	w.s.Revoke(true)
	w.done(t, "disconnected").want(t, "code", "4004")
}

// An intent that is switched off in the developer portal closes the connection.
func TestDiscord_DiscordJS_DisallowedIntent_Disconnected(t *testing.T) {
	t.Parallel()
	w := startDiscord(t, discord.Options{Denied: discord.GuildMembers})
	w.wait(t, "login").want(t, "error.message", "Used disallowed intents")
	w.done(t, "disconnected").want(t, "code", "4014")
}
