package platforms

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

// event is a row of the table of events in an adapter's README.
type event struct {
	name string // the row's first cell
	by   string // the scenario that has the event; the other fields are unused then
	do   func() // makes the event happen
	want string // the rows it makes, a verb and a pattern of the content each, "; " between them
}

// Every row of the READMEs' tables of events happens on a fake platform, and the adapter's process makes the rows from it
// that the table says.
func TestEvents_RowsOfTheREADMEs_AreStored(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]func(*testing.T) (*fixture, []event){
		"teled": telegramEvents, "discd": discordEvents, "slakd": slackEvents,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, all := events(t)
			checkEventTable(t, name, all)
			for n, e := range all {
				if e.by == "" {
					f.wantRows(e, fmt.Sprintf("after event %d", n))
				}
			}
			f.Exec(`DELETE FROM messages WHERE disposition IS NULL AND direction = 'in'`) // gated never ran
		})
	}
}

// checkEventTable fails the test unless the table of an adapter's README has exactly these events, and the scenarios exist that they
// name.
func checkEventTable(t *testing.T, adapter string, all []event) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("../../..", adapter, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), " event | row |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows, names []string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.SplitN(line, " | ", 2)[0][len("| "):])
	}
	for _, e := range all {
		names = append(names, e.name)
		if e.by != "" && !hasTest(t, e.by) {
			t.Errorf("%s: there is no scenario %s", e.name, e.by)
		}
	}
	if !slices.Equal(rows, names) {
		t.Errorf("the README has the events %q, this test %q", rows, names)
	}
}

// hasTest reports whether this package has a test.
func hasTest(t *testing.T, name string) bool {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && regexp.MustCompile(`(?m)^func `+name+`\(`).Match(text)
	})
}

// wantRows makes an event happen, and fails the test unless it makes the rows that it should.
func (f *fixture) wantRows(e event, sentinel string) {
	f.T.Helper()
	before := f.Value(`SELECT coalesce(max(id), 0) FROM messages`)
	var want []string
	if e.want != "" {
		want = strings.Split(e.want, "; ")
	}
	e.do()
	var got []string
	defer func() {
		if f.T.Failed() {
			f.T.Logf("%s: rows %q", e.name, got)
		}
	}()
	arrived := func() bool {
		got = f.Query(`SELECT verb || ' ' || replace(content, char(10), ' ') FROM messages WHERE direction = 'in' AND id > ? ORDER BY id`, before)
		return len(got) >= len(want)
	}
	f.Until(fmt.Sprintf("rows of %q: %q", e.name, want), arrived)
	f.say(f.dm, sentinel)
	f.Until(sentinel, func() bool { return arrived() && len(got) > len(want) })
	left := slices.Clone(got)
	for _, pattern := range append(want, "message "+sentinel) {
		n := slices.IndexFunc(left, func(row string) bool { ok, err := path.Match(pattern, row); return ok && err == nil })
		if n < 0 {
			f.T.Errorf("%s: rows %q, want one like %q", e.name, got, pattern)
			continue
		}
		left = slices.Delete(left, n, n+1)
	}
	if len(left) > 0 {
		f.T.Errorf("%s: rows %q are too many", e.name, left)
	}
}

// startAdapter starts an adapter alone.
func startAdapter(t *testing.T, p chatsim.Platform) *fixture {
	f := newInstance(t).serve(p)
	f.start(f.info.Daemon)
	f.waitConnection("connected")
	f.say(f.dm, "hello")
	f.waitStored("hello")
	return f
}

// post makes the bot write into a chat.
func (f *fixture) post(chat, text string) (id string) {
	f.putOutbound(msg.Message{ChatJID: chat, Content: text})
	f.Until(text+" to be sent", func() bool {
		id = f.Value(`SELECT coalesce(platform_id, '') FROM messages WHERE direction = 'out' AND content = ?`, text)
		return id != ""
	})
	return id
}

func telegramEvents(t *testing.T) (*fixture, []event) {
	w := chatsim.NewTelegram(chatsim.Size{}, telegramOptions())
	f := startAdapter(t, w)
	alice, bob := w.User("Alice", "alice"), w.User("Bob", "bob")
	group, other, forum := w.Supergroup("Team", alice), w.Supergroup("Other", alice), w.Forum("Forum", alice)
	elsewhere := w.Supergroup("Elsewhere", alice)
	for _, p := range []telegram.Place{group, other, forum} {
		p.AddBot(alice)
		p.Promote(alice, true)
	}
	first := group.Say(alice, "hi all")
	f.waitStored("hi all")
	return f, []event{
		{name: "message, channel post", want: "message good morning; mention hello; reply thanks", do: func() {
			group.Say(alice, "good morning")
			group.Say(alice, "@"+w.Me().Username+" hello")
			group.Reply(alice, f.botMessage(w, group, "welcome"), "thanks")
		}},
		{name: "sticker, location, contact, poll, dice, rich message, …", want: `message \[sticker: 😀*; message \[location: 1*; message \[contact: Ada*; message \[poll: Lunch*`,
			do: func() {
				group.Sticker(alice, "😀")
				group.Location(alice, 1, 2)
				group.Contact(alice, "+481", "Ada")
				group.Poll(alice, "Lunch?", "soup", "pie")
			}},
		{name: "answer to a message", want: "message yes", do: func() { group.Reply(alice, first.ID, "yes") }},
		{name: "answer to a message of another chat", want: "message is it true?; message big news", do: func() {
			group.ReplyElsewhere(alice, other, other.Say(alice, "big news").ID, "is it true?")
		}},
		{name: "album", by: "TestTelegram_WhatUsersSend_ArrivesWhole"},
		{name: "text above 4,096 characters", by: "TestTelegram_WhatUsersSend_ArrivesWhole"},
		{name: "voice message, video note, music, video", want: "message ", do: func() { group.Voice(alice, []byte("OggS")) }},
		{name: "forwarded message", want: "message forwarded from Alice*hi all", do: func() { group.Forward(alice, first) }},
		{name: "edited message, edited channel post", want: "edit hi everyone", do: func() { group.Edit(alice, first.ID, "hi everyone") }},
		{name: "reaction added, removed", want: "reaction 👍; reaction -👍", do: func() {
			group.React(alice, first.ID, "👍")
			group.Unreact(alice, first.ID)
		}},
		{name: "member joins, leaves", want: "join *; leave *", do: func() { group.Join(bob); group.Leave(bob) }},
		{name: "bot added, removed, blocked, unblocked", want: "leave *; join *; leave *; join *", do: func() {
			elsewhere.RemoveBot(alice)
			elsewhere.AddBot(alice)
			w.Block(bob)
			w.Unblock(bob)
		}},
		{name: "forum topic created, renamed", do: func() {
			forum.Topic(alice, "Deploys")
			f.Until("the topic's title", func() bool { return f.Value(`SELECT count(*) FROM platform_threads WHERE title = 'Deploys'`) == "1" })
		}},
		{name: "group becomes a supergroup", by: "TestTelegram_GroupBecomesSupergroup_AnsweredThere"},
		{name: "vote in a poll of the bot", by: "TestPoll_DaemonsKilled_VotesCountOnce"},
		{name: "poll of the bot closed", by: "TestPoll_DaemonsKilled_VotesCountOnce"},
		{name: "button of a question pressed", by: "TestQuestion_Press_AnswersItOnce"},
		{name: "*Stop* pressed below the work on an answer", by: "TestStop_Pressed_EndsTheTurn"},
		{name: "*Undo* pressed below an answer", by: "TestUndo_Pressed_TakesTheTurnBack"},
		{name: "press of another button, as of a game, or of a program that had the bot before", do: func() {
			query := group.ForgePress(alice, f.botMessage(w, group, "play"), "game:1")
			f.Until("the press to be answered", func() bool { a, ok := w.Server.PressAnswer(query); return ok && a.Text != "" })
		}},
		{name: "new counts of a poll, other notices", do: func() {
			w.Inject(`"poll": {"id": "1", "question": "Lunch?", "options": [], "total_voter_count": 3, "is_closed": false, "is_anonymous": true, "type": "regular"}`)
		}},
	}
}

// botMessage makes the bot write into a group, and returns the message's id.
func (f *fixture) botMessage(w *chatsim.Telegram, in telegram.Place, text string) (id int) {
	_, err := fmt.Sscan(f.post(fmt.Sprintf("telegram:%d", in.ChatID), text), &id)
	f.OK(err)
	return id
}

func discordEvents(t *testing.T) (*fixture, []event) {
	w := chatsim.NewDiscord(chatsim.Size{}, discordOptions())
	alice, bob := w.User("Alicia", "alicia"), w.User("Boris", "boris")
	guild := w.Guild("Team", alice)
	talk := guild.Channel("talk")
	f := startAdapter(t, w)
	first := talk.Say(alice, "hi all")
	f.waitStored("hi all")
	return f, []event{
		{name: "message", want: "message good morning; mention hello; reply thanks", do: func() {
			talk.Say(alice, "good morning")
			talk.Say(alice, w.Me().Mention()+" hello")
			talk.Reply(alice, f.post("discord:"+talk.ChannelID, "welcome"), "thanks")
		}},
		{name: "sticker, poll, forwarded message, embeds and components of bots", want: `message \[sticker: wave*; message \[poll: Lunch*; message *hi all*`,
			do: func() {
				talk.Sticker(alice, "wave")
				talk.Poll(alice, "Lunch?", "soup", "pie")
				talk.Forward(alice, first)
			}},
		{name: "message edited", want: "edit hi everyone", do: func() {
			talk.Edit(alice, first.ID, "hi everyone")
			talk.Unfurl(first.ID, discord.Embed{Title: "a page"})
		}},
		{name: "message deleted, several deleted", want: "message one; message two; message three; delete ; delete ; delete ", do: func() {
			one, two, three := talk.Say(alice, "one"), talk.Say(alice, "two"), talk.Say(alice, "three")
			talk.Delete(one.ID)
			talk.Delete(two.ID, three.ID)
		}},
		{name: "reaction added, removed", want: "reaction 👍; reaction -👍", do: func() {
			talk.React(alice, first.ID, "👍")
			talk.Unreact(alice, first.ID, "👍")
		}},
		{name: "vote in a poll of the bot", by: "TestPoll_DaemonsKilled_VotesCountOnce"},
		{name: "poll of the bot ended", by: "TestPoll_DaemonsKilled_VotesCountOnce"},
		{name: "member joins, leaves", want: "join *; leave *", do: func() { guild.Join(bob); guild.Leave(bob) }},
		{name: "bot added to a server", want: "join added the bot", do: func() {
			another := w.Guild("Another", alice)
			another.Channel("general")
			another.RemoveBot()
			another.AddBot()
		}},
		{name: "button of a question pressed", by: "TestQuestion_Press_AnswersItOnce"},
		{name: "*Stop* pressed below the work on an answer", by: "TestStop_Pressed_EndsTheTurn"},
		{name: "*Undo* pressed below an answer", by: "TestUndo_Pressed_TakesTheTurnBack"},
		{name: "slash command", by: "TestDiscord_SlashCommand_IsAnswered"},
		{name: "thread created or renamed, channels and roles", do: func() {
			talk.Thread(alice, "deploys")
			f.Until("the thread's title", func() bool { return f.Value(`SELECT count(*) FROM platform_threads WHERE title = 'deploys'`) == "1" })
		}},
	}
}

func slackEvents(t *testing.T) (*fixture, []event) {
	o := slackOptions()
	o.Commands = []string{slack.DefaultCommand, "/new"}
	o.RetryDelays = slices.Repeat([]time.Duration{time.Second}, 120) // a message from before the connection comes, however late slakd connects
	w := chatsim.NewSlack(chatsim.Size{}, o)
	f := startAdapter(t, w)
	alice, bob := w.User("Alicia", "alicia"), w.User("Boris", "boris")
	talk := w.Channel("talk", alice)
	first := talk.Say(alice, "hi all")
	f.waitStored("hi all")
	f.waitStored("what about this?") // from before the connection
	return f, []event{
		{name: "message, `app_mention`", want: "message good morning; mention hello; reply thanks", do: func() {
			talk.Say(alice, "good morning")
			talk.Say(alice, w.Me().Mention()+" hello")
			talk.Reply(alice, f.post("slack:"+talk.ChannelID, "welcome"), "thanks")
		}},
		{name: "message edited", want: "edit hi everyone", do: func() {
			talk.Edit(alice, first.TS, "hi everyone")
			talk.Unfurl(first.TS)
		}},
		{name: "message deleted", want: "message one; delete ", do: func() { talk.Delete(alice, talk.Say(alice, "one").TS) }},
		{name: "`reaction_added`, `reaction_removed`", want: "reaction 👍; reaction -👍", do: func() {
			talk.React(alice, first.TS, "thumbsup")
			talk.Unreact(alice, first.TS, "thumbsup")
		}},
		{name: "`member_joined_channel`, `member_left_channel`", want: "join *; leave *", do: func() { talk.Join(bob); talk.Leave(bob) }},
		{name: "bot added to a channel", want: "join added the bot", do: func() { w.ChannelWithoutBot("news", alice).InviteBot(alice) }},
		{name: "button of a question pressed", by: "TestQuestion_Press_AnswersItOnce"},
		{name: "*Stop* pressed below the work on an answer", by: "TestStop_Pressed_EndsTheTurn"},
		{name: "*Undo* pressed below an answer", by: "TestUndo_Pressed_TakesTheTurnBack"},
		{name: "slash command", want: "message /new hello; message /new hello", do: func() {
			talk.Command(alice, "/arizuko", "new hello")
			talk.Command(alice, "/new", "hello")
		}},
		{name: "`agent_session_stopped`", by: "TestSlack_NativeStop_EndsTheTurn"},
		{name: "assistant's pane opened", do: func() {
			w.OpenPane(alice, slack.Place{})
			f.Until("the pane", func() bool {
				return f.Value(`SELECT count(*) FROM platform_threads WHERE kind = 'assistant_thread'`) == "1"
			})
		}},
		{name: "channel or user renamed", do: func() {
			talk.Rename(alice, "chatter")
			f.Until("the new title", func() bool { return f.Value(`SELECT count(*) FROM chats WHERE title = '#chatter'`) == "1" })
		}},
	}
}
