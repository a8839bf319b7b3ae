package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	fake "arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/need"
)

func TestInbound_UserActions(t *testing.T) {
	r := newHarness(t, fake.Options{}, "BOTS=mentions")
	bob := r.discord.User("Bob", "bob")
	forum := r.guild.Forum("help")
	r.connect()
	us := r.discord.Me().Mention()

	hello := r.general.Say(r.alice, us+" hello")
	r.general.Edit(r.alice, hello.ID, "hello you")
	r.general.Unfurl(hello.ID, fake.Embed{Title: "a preview"})
	r.general.React(r.alice, hello.ID, "👍")
	r.general.Unreact(r.alice, hello.ID, "👍")
	r.general.Delete(hello.ID)
	r.general.Say(r.alice, r.guild.BotRole().Mention()+" ship it")
	thread := r.general.Thread(r.alice, "Soup")
	thread.Say(r.alice, "too hot")
	post := forum.OpenPost(r.alice, "My pan burns", "what now?")
	post.Say(r.alice, "help")
	secret := r.general.PrivateThread(r.alice, "secret")
	secret.AddToThread(r.discord.Me())
	secret.Say(r.alice, "psst")
	r.discord.DM(r.alice).Say(r.alice, "in private")
	r.general.Sticker(r.alice, "Wave")
	r.general.Poll(r.alice, "Lunch?", "soup", "salad")
	r.guild.Join(bob)
	r.guild.Leave(bob)
	weather := r.discord.OtherBot("Weather", "weather")
	r.guild.Join(weather)
	r.general.Say(weather, "sunny")
	r.general.Say(weather, us+" rain")
	r.general.Say(r.alice, "the end")

	r.expect(
		"mention: hello [#general]", "edit: hello you [#general]", "reaction: 👍 [#general]", "reaction: -👍 [#general]", "delete:  [#general]",
		"mention: ship it [#general]", "message: too hot [#general / Soup]",
		"message: what now? [#help / My pan burns]", "message: help [#help / My pan burns]",
		"message: psst [#general / secret]", "message: in private [Alice]",
		"message: [sticker: Wave] [#general]", "message: [poll: Lunch?]\n- soup\n- salad [#general]",
		"join: joined [#general]", "leave: left [#general]",
		"mention: rain [#general]", "message: the end [#general]",
	)
	if thread := r.Text(`SELECT kind || ' ' || parent_author FROM platform_threads WHERE thread_id = ?`, post.ChannelID); thread != "forum_post discord:"+r.alice.ID {
		t.Errorf("the post is a %q", thread)
	}
}

// The message that a thread is made from is stored in its channel, also if it is older than the bot, so that the thread has its
// beginning: made while discd runs, or while it is down.
func TestThreads_MadeFromOlderMessage_HaveTheirBeginning(t *testing.T) {
	r := newHarness(t, fake.Options{})
	first, second := r.general.Say(r.alice, "soup or salad?"), r.general.Say(r.alice, "tea or coffee?")
	stop := r.connect()
	r.general.ThreadFrom(r.alice, first.ID, "Soup").Say(r.alice, "soup")
	r.expect("message: soup or salad? [#general]", "message: soup [#general / Soup]")
	stop()
	r.general.ThreadFrom(r.alice, second.ID, "Tea").Say(r.alice, "tea")
	r.connect()
	r.expect("message: soup or salad? [#general]", "message: soup [#general / Soup]", "message: tea or coffee? [#general]", "message: tea [#general / Tea]")
	if got := r.Text(`SELECT group_concat(ifnull(reason, '-'), ' ') FROM (SELECT reason FROM messages ORDER BY id)`); got != "quoted - quoted -" {
		t.Errorf("decided as %s", got)
	}
}

// A missed message that the database refuses costs none of its page, and not the message that its thread was made from.
func TestThreads_MissedMessageIsRefused_OthersAreStored(t *testing.T) {
	r := newHarness(t, fake.Options{})
	old := r.general.Say(r.alice, "soup or salad?")
	stop := r.connect()
	r.general.Say(r.alice, "before") // by then discd knows since when it is here
	r.expect("message: before [#general]")
	stop()
	r.Exec(`CREATE TRIGGER no BEFORE INSERT ON messages WHEN NEW.content = 'poison' BEGIN SELECT RAISE(ABORT, 'no'); END`)
	thread := r.general.ThreadFrom(r.alice, old.ID, "Soup")
	thread.Say(r.alice, "poison")
	thread.Say(r.alice, "soup")
	r.connect()
	r.expect("message: before [#general]", "message: soup or salad? [#general]", "message: soup [#general / Soup]")
}

func TestAnswer_AndReply(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.connect()
	question := r.general.Say(r.alice, r.discord.Me().Mention()+" hello")
	r.expect("mention: hello [#general]")
	id := r.queue("discord:"+r.general.ChannelID, "", "hello yourself")
	r.Until("the answer", func() bool { return r.Text(`SELECT out_state FROM messages WHERE id = ?`, id) == "sent" })
	answer := r.Text(`SELECT platform_id FROM messages WHERE id = ?`, id)
	r.general.Reply(r.alice, answer, "thanks")
	r.expect("mention: hello [#general]", "reply: thanks [#general]") // and not our own words
	if question.ID != r.Text(`SELECT platform_id FROM messages WHERE verb = 'mention'`) {
		t.Error("a message has another id here")
	}
}

func TestInbound_BotAdded_IsOneJoin(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.connect()
	garden := r.discord.Guild("Garden", r.alice)
	shed := garden.Channel("shed")
	shed.Say(r.alice, "welcome")
	r.expect("message: welcome [#shed]") // there was no channel yet for the join
	garden.RemoveBot()
	garden.AddBot()
	r.expect("message: welcome [#shed]", "join: added the bot [#shed]")
	garden.Outage()
	shed.Say(r.alice, "again")
	r.expect("message: welcome [#shed]", "join: added the bot [#shed]", "message: again [#shed]")
	if got := r.Text(`SELECT sender_name || addressed FROM messages WHERE verb = 'join'`); got != "Garden1" {
		t.Errorf("the sender is %q", got)
	}
}

func TestInbound_WantedFiles_AreDownloaded(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.connect()
	r.general.Attach(r.alice, "unwanted", fake.File{Name: "other.txt", Data: []byte("ham")})
	r.general.Attach(r.alice, "look", fake.File{Name: "notes.txt", Data: []byte("eggs")}, fake.File{Name: "big.bin", Data: []byte("x"), Size: 1 << 30})
	r.Until("the rows", func() bool { return len(r.stored()) == 2 })
	r.Exec(`UPDATE messages SET files_wanted = 1 WHERE content = 'look'`)
	r.Until("the files", func() bool {
		return r.Text(`SELECT attachments FROM messages WHERE pending_files = 0`) != ""
	})
	files := r.Text(`SELECT attachments FROM messages WHERE content = 'look'`)
	path := r.Text(`SELECT attachments ->> '$[0].path' FROM messages WHERE content = 'look'`)
	data, err := os.ReadFile(filepath.Join(r.Data, path))
	if err != nil || string(data) != "eggs" {
		t.Errorf("%s holds %q, %v", files, data, err)
	}
	if !strings.Contains(r.Text(`SELECT attachments ->> '$[1].error' FROM messages WHERE content = 'look'`), "MEDIA_MAX") {
		t.Errorf("the large one: %s", files)
	}
	if all, err := filepath.Glob(filepath.Join(r.Data, "media", "*", "*")); len(all) != 1 {
		t.Errorf("on disk: %q, %v", all, err)
	}
}

func TestInbound_Commands_AreStoredAndAnswered(t *testing.T) {
	r := newHarness(t, fake.Options{})
	stop := r.connect()
	r.Until("the commands", func() bool { return len(r.discord.Commands()) == len(inbound.Commands()) })
	thread := r.general.Thread(r.alice, "Soup")
	given := thread.Command(r.alice, "new", "#deploy ship it")
	alone := r.discord.DM(r.alice).Command(r.alice, "ping", "")
	r.Until("the answers", func() bool { return r.discord.Answered(given) && r.discord.Answered(alone) })
	r.expect("mention: /new #deploy ship it [#general / Soup]", "mention: /ping [Alice]")
	for _, c := range r.discord.Sent() {
		if c.Route == fake.AnswerInteraction && !c.Ephemeral {
			t.Errorf("everybody sees %s", c.Body)
		}
	}
	stop()
	r.connect()
	if n, want := r.commandCalls(fake.CreateCommand), len(inbound.Commands()); n != want || len(r.discord.Commands()) != want {
		t.Errorf("commands were written %d times; there are %d, want %d", n, len(r.discord.Commands()), want)
	}
}

// commandCalls counts the calls of a route about commands that were carried out.
func (r *harness) commandCalls(route string) (n int) {
	for _, c := range r.discord.Sent() {
		if c.Route == route {
			n++
		}
	}
	return n
}

// The commands of the application that discd did not make stay, among them the entry point of an Activity, and one of a name
// that discd offers as well. An earlier version of discd's own is replaced.
func TestCommands_OthersStay_OwnAreReplaced(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.discord.EntryPoint("launch")
	r.discord.AddCommand("help", "help of another program")
	stop := r.connect()
	want := len(inbound.Commands()) + 1
	r.Until("what was offered to be stored", func() bool {
		return r.Text(`SELECT count(*) FROM cursors WHERE daemon = 'discd' AND key = 'commands'`) == "1"
	})
	stop()
	if n := len(r.discord.Commands()); n != want {
		t.Fatalf("%d commands, want %d", n, want)
	}
	const own, others = "as an earlier version called it", "as another program calls it"
	r.discord.AddCommand("dice", "rolls dice")
	r.discord.EditCommand("ping", own)
	r.discord.EditCommand("new", others)
	at := slices.IndexFunc(inbound.Commands(), func(c discordapi.Command) bool { return c.Name == "ping" })
	r.Exec(`UPDATE cursors SET value = replace(value, ?, ?) WHERE daemon = 'discd' AND key = 'commands'`, inbound.Commands()[at].Description, own)
	stop = r.connect()
	r.Until("the changed command", func() bool { return r.commandCalls(fake.EditCommand) == 1 })
	stop()
	r.connect()
	stays := map[string]string{"help": "help of another program", "dice": "rolls dice", "new": others}
	for _, c := range r.discord.Commands() {
		if text := stays[c.Name]; text != "" && c.Description != text || c.Description == own {
			t.Errorf("the command %s is %q", c.Name, c.Description)
		}
	}
	if n, created, edited := len(r.discord.Commands()), r.commandCalls(fake.CreateCommand), r.commandCalls(fake.EditCommand); n != want+1 || created != want-2 || edited != 1 {
		t.Errorf("%d commands, %d created, %d edited", n, created, edited)
	}
}

// Discord takes only some calls at once, also for commands and for missed messages: what is left is done in the same session.
func TestConnect_RateLimits_AllCommandsAndMessagesCome(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	r := newHarness(t, fake.Options{RateLimits: true})
	stop := r.connect()
	r.general.Say(r.alice, "before")
	r.Until("the row", func() bool { return len(r.stored()) == 1 })
	stop()
	for i := range 600 {
		r.general.Say(r.alice, fmt.Sprint(i))
	}
	r.connect()
	r.Until("the commands", func() bool { return len(r.discord.Commands()) == len(inbound.Commands()) })
	r.Until("the messages", func() bool { return len(r.stored()) == 601 })
	if text := r.Log.String(); strings.Contains(text, "level=WARN") {
		t.Errorf("limits that are kept are no trouble:\n%s", text)
	}
}

// A thread that begins with a message to the bot is joined, and so are those it answers in.
func TestThreads_Addressed_AreJoined(t *testing.T) {
	r := newHarness(t, fake.Options{JoinToHear: true})
	r.connect()
	asked := r.general.Say(r.alice, r.discord.Me().Mention()+" hello")
	r.expect("mention: hello [#general]")
	thread := r.general.ThreadFrom(r.alice, asked.ID, "hello")
	r.Until("the call", func() bool { return r.asked(fake.JoinThread, thread) == 1 })
	thread.Say(r.alice, "and then?")
	other := r.general.Thread(r.alice, "other")
	other.Say(r.alice, "not heard")
	r.queue("discord:"+r.general.ChannelID, other.ChannelID, "an answer")
	r.Until("the answer", func() bool { return r.asked(fake.CreateMessage, other) == 1 })
	other.Say(r.alice, "heard")
	r.expect("mention: hello [#general]", "message: and then? [#general / hello]", "message: heard [#general / other]")
}

// The end of a poll that came while discd was down has Discord's counts.
func TestPolls_EndedWhileDown_HaveCounts(t *testing.T) {
	r := newHarness(t, fake.Options{})
	stop := r.connect()
	r.Exec(`INSERT INTO messages (chat_jid, direction, kind, sender, sender_name, content, timestamp, received_at, source, out_state)
		VALUES (?, 'out', 'poll', 'agent:main', 'main', '{"question":"Lunch?","options":["soup","salad"]}', ?, ?, 'agent', 'queued')`,
		"discord:"+r.general.ChannelID, time.Now().UnixMilli(), time.Now().UnixMilli())
	id := ""
	r.Until("the poll", func() bool {
		id = r.Text(`SELECT ifnull(platform_id, '') FROM messages WHERE kind = 'poll' AND out_state = 'sent'`)
		return id != ""
	})
	stop()
	r.general.Vote(r.alice, id, 2, true)
	r.general.EndPoll(id)
	r.connect()
	r.Until("the end", func() bool {
		return r.Text(`SELECT content FROM messages WHERE verb = 'poll_end'`) == `{"result":{"counts":[0,1],"voters":1}}`
	})
}

// Messages sent meanwhile are stored, once and in order.
func TestReconnect_AfterEachKindOfBreak(t *testing.T) {
	for name, end := range map[string]func(*fake.Server){
		"the network breaks":            func(s *fake.Server) { s.Disconnect() },
		"Discord asks for it":           func(s *fake.Server) { s.RequestReconnect() },
		"a close that can be resumed":   func(s *fake.Server) { s.CloseGateway(fake.CloseUnknownError, "Unknown error.") },
		"the session is forgotten":      func(s *fake.Server) { s.Disconnect(); s.ForgetSessions() },
		"the session is invalid":        func(s *fake.Server) { s.InvalidateSessions(false) },
		"the session is called invalid": func(s *fake.Server) { s.InvalidateSessions(true) },
		"the line is dead":              func(s *fake.Server) { s.FreezeConnections() },
		"Discord cannot be reached": func(s *fake.Server) {
			s.SetReachable(false)
			time.AfterFunc(100*time.Millisecond, func() { s.SetReachable(true) })
		},
	} {
		if testing.Short() && name != "the network breaks" {
			continue // some wait for seconds before they reconnect
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, fake.Options{Heartbeat: 100 * time.Millisecond})
			r.connect()
			r.general.Say(r.alice, "before")
			r.expect("message: before [#general]")
			end(r.discord)
			r.general.Say(r.alice, "meanwhile")
			r.expect("message: before [#general]", "message: meanwhile [#general]")
			r.general.Say(r.alice, "after")
			r.expect("message: before [#general]", "message: meanwhile [#general]", "message: after [#general]")
		})
	}
}

// Discord calls each session invalid until discd has begun more on one connection than it does. The next one hears all.
func TestReconnect_SessionsInvalidInARow_NextOneHears(t *testing.T) {
	need.Full(t) // discd waits for five seconds
	t.Parallel()
	r := newHarness(t, fake.Options{})
	r.connect()
	r.general.Say(r.alice, "before")
	r.expect("message: before [#general]")
	for n := 2; n <= 3; n++ {
		r.discord.InvalidateSessions(false)
		r.Until("the next session", func() bool { return r.discord.Gateway().Identified == n })
	}
	r.general.Say(r.alice, "after")
	r.expect("message: before [#general]", "message: after [#general]")
}

func TestInbound_DuplicateAndInvalidEvents(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.connect()
	first := r.general.Say(r.alice, "first")
	r.discord.DuplicateNext(1)
	r.general.React(r.alice, first.ID, "👍")
	r.discord.Redeliver(2)
	r.discord.Inject("MESSAGE_CREATE", `"not an object"`)
	r.discord.Inject("MESSAGE_CREATE", `null`)
	r.discord.Inject("MESSAGE_CREATE", `{"id":"1","channel_id":"2"}`)
	r.discord.Inject("MESSAGE_UPDATE", `{"id":"1","channel_id":"2","guild_id":"3","author":null,"edited_timestamp":"2026-11-21T12:00:00Z"}`)
	r.discord.Inject("A_KIND_THAT_CAME_LATER", `[]`)
	r.discord.InjectFrame("{")
	r.discord.ReverseNext(2)
	r.general.Say(r.alice, "third")
	r.general.Say(r.alice, "second")
	r.expect("message: first [#general]", "reaction: 👍 [#general]", "message: second [#general]", "message: third [#general]")
	if got := strings.Count(r.Log.String(), "undecodable event skipped"); got != 3 {
		t.Errorf("%d events were skipped:\n%s", got, r.Log.String())
	}
}

// Until Discord answers. A channel that is hidden counts as no thread.
func TestInbound_UnknownThread_IsLookedUp(t *testing.T) {
	r := newHarness(t, fake.Options{})
	thread := r.general.Thread(r.alice, "Soup")
	thread.Archive(true, false)
	r.connect()
	said := func(channel string, id int) string {
		return fmt.Sprintf(`{"id":"%d","channel_id":%q,"guild_id":%q,"content":"hello","author":{"id":%q,"username":"alice"}}`, id, channel, r.guild.ID, r.alice.ID)
	}
	r.discord.InjectFault(fake.Fault{Route: fake.GetChannel, Status: 502})
	r.discord.Inject("MESSAGE_CREATE", said(thread.ChannelID, 1))
	r.discord.Inject("MESSAGE_CREATE", said("5", 2))
	r.discord.Inject("MESSAGE_CREATE", said(thread.ChannelID, 3))
	r.Until("the rows", func() bool { return r.Text(`SELECT count(*) FROM messages`) == "3" })
	for id, want := range map[int]string{1: "general / Soup", 2: "", 3: "general / Soup"} {
		got := r.Text(`SELECT ltrim(ifnull(c.title, ''), '#') || ifnull(' / ' || t.title, '') FROM messages m LEFT JOIN chats c ON c.jid = m.chat_jid
			LEFT JOIN platform_threads t ON t.chat_jid = m.chat_jid AND t.thread_id = m.thread_id WHERE platform_id = ?`, fmt.Sprint(id))
		if got != want {
			t.Errorf("message %d is in %q, not %q", id, got, want)
		}
	}
	if asked := len(slices.DeleteFunc(r.discord.Calls(), func(c fake.Call) bool { return c.Route != fake.GetChannel })); asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// No event is lost.
func TestInbound_WritesFail_AreRetried(t *testing.T) {
	r := newHarness(t, fake.Options{Heartbeat: 200 * time.Millisecond})
	r.connect()
	r.Exec(`CREATE TRIGGER no BEFORE INSERT ON messages BEGIN SELECT * FROM no; END`)
	for i := range 3 {
		r.general.Say(r.alice, fmt.Sprint(i))
	}
	r.Until("the failed write", func() bool { return strings.Contains(r.Log.String(), "storing event failed") })
	if err := r.discord.WaitConfirmed(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.discord.SetReachable(false) // events received by then are not sent again
	r.Exec(`DROP TRIGGER no`)
	r.expect("message: 0 [#general]", "message: 1 [#general]", "message: 2 [#general]")
	r.discord.SetReachable(true)
	r.general.Say(r.alice, "3")
	r.expect("message: 0 [#general]", "message: 1 [#general]", "message: 2 [#general]", "message: 3 [#general]")
}

func TestConnect_Refused_ReportsRemedy(t *testing.T) {
	for name, test := range map[string]struct {
		options fake.Options
		env     string
		detail  string
	}{
		"the token is wrong":  {fake.Options{}, "DISCORD_BOT_TOKEN=wrong", "DISCORD_BOT_TOKEN"},
		"the content is not ": {fake.Options{Denied: fake.MessageContent}, "LOG_LEVEL=info", "Message Content Intent is off"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, test.options, test.env)
			r.Serve()
			detail := ""
			r.Until("the report", func() bool {
				state, text := r.Connection()
				detail = text
				return state == "bad_credentials"
			})
			if !strings.Contains(detail, test.detail) || strings.Contains(detail, "\n") {
				t.Errorf("detail is %q", detail)
			}
		})
	}
}

func TestConnect_MembersIntentOff_Works(t *testing.T) {
	r := newHarness(t, fake.Options{Denied: fake.GuildMembers})
	r.connect()
	r.guild.Join(r.discord.User("Bob", "bob"))
	r.general.Say(r.alice, "hello")
	r.expect("message: hello [#general]")
}

func TestDelivery_RateLimits_DoNotDelayOtherChats(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{RateLimits: true})
	quiet := r.guild.Channel("quiet")
	r.connect()
	var want, sent []string
	for i := range 7 {
		want = append(want, fmt.Sprint(i))
		r.queue("discord:"+r.general.ChannelID, "", want[i])
	}
	r.queue("discord:"+quiet.ChannelID, "", "quick")
	sentIn := func(p fake.Place) string {
		return r.Text(`SELECT count(*) FROM messages WHERE out_state = 'sent' AND chat_jid = ?`, "discord:"+p.ChannelID)
	}
	r.Until("the other chat", func() bool { return sentIn(quiet) == "1" })
	var before []string
	for _, c := range r.discord.Calls() {
		if c.Route == fake.CreateMessage && c.ChannelID == quiet.ChannelID {
			break
		}
		if c.Route == fake.CreateMessage {
			before = append(before, c.Text)
		}
	}
	if len(before) > 3 { // the first chat's burst
		t.Errorf("the other chat had to wait for %q", before)
	}
	if testing.Short() {
		return // the rest waits for the limit
	}
	r.Until("all of it", func() bool { return sentIn(r.general) == "7" })
	for _, c := range r.discord.Calls() {
		if c.Status == http.StatusTooManyRequests {
			t.Errorf("%s was refused:\n%s", c.Route, r.Log.String())
		}
		if c.ChannelID == r.general.ChannelID && c.Route == fake.CreateMessage {
			sent = append(sent, c.Text)
		}
	}
	if diff := cmp.Diff(want, sent); diff != "" || strings.Contains(r.Log.String(), "class=rate") {
		t.Errorf("sent (-want +got):\n%s\n%s", diff, r.Log.String())
	}
}
