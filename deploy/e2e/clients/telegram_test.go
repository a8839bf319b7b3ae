package clients

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/telegram"
)

// picture is a PNG with one pixel.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// onTelegram is a bot of grammY in a DM, a supergroup and a forum.
type onTelegram struct {
	*bot
	s               *telegram.Server
	alice           telegram.User
	dm, team, forum telegram.Place
}

func startTelegram(t *testing.T, o telegram.Options) *onTelegram {
	t.Helper()
	s := telegram.New(o)
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &onTelegram{s: s, alice: s.User("Alice", "alice")}
	w.dm, w.team, w.forum = s.DM(w.alice), s.Supergroup("Team", w.alice), s.Forum("Forum", w.alice)
	w.bot = startBot(t, "telegram.mjs", "TOKEN="+s.Token(), "BASE="+base, "PICTURE="+picture)
	w.done(t, "connected").want(t, "me.username", telegram.DefaultUsername, "me.can_join_groups", "true")
	return w
}

// ask makes Alice tell the bot in a place to do a step, and returns how it went. In groups she mentions it.
func (w *onTelegram) ask(t *testing.T, in telegram.Place, text string) line {
	t.Helper()
	step, _, _ := strings.Cut(text, " ")
	if in.ChatID < 0 {
		text = "@" + w.s.Me().Username + " " + text
	}
	in.Say(w.alice, text)
	return w.wait(t, step)
}

// get is ask for a step that must succeed.
func (w *onTelegram) get(t *testing.T, in telegram.Place, text string) line {
	t.Helper()
	l := w.ask(t, in, text)
	if l["error"] != nil {
		t.Fatalf("%s failed: %s", text, l.at("error"))
	}
	return l
}

// last is the newest message of a place.
func lastOnTelegram(t *testing.T, in telegram.Place) telegram.Message {
	t.Helper()
	all := in.Messages()
	return all[len(all)-1]
}

func (w *onTelegram) refused(t *testing.T, in telegram.Place, text, code, description string) {
	t.Helper()
	l := w.ask(t, in, text)
	if l.at("error.code") != code || !strings.Contains(l.at("error.description"), description) {
		t.Errorf("%s: %v, want error %s %q", text, l, code, description)
	}
}

func TestTelegram_GrammY_MeetsThePlatform(t *testing.T) {
	t.Parallel()
	w := startTelegram(t, telegram.Options{})
	for _, test := range []behaviour{
		{"messages", w.testMessages}, {"edits", w.testEdits}, {"deletions", w.testDeletions}, {"topics", w.testTopics},
		{"files", w.testFiles}, {"buttons", w.testButtons}, {"reactions", w.testReactions}, {"polls", w.testPolls},
		{"commands", w.testCommands}, {"chats", w.testChats}, {"texts", w.testTexts}, {"privacy", w.testPrivacy},
		{"flood waits and 5xx", w.testErrors}, {"token", w.testToken}, {"outage", w.testOutage}, {"second poller", w.testSecondPoller},
	} {
		t.Run(test.name, test.run)
	}
}

// The retries of grammY get more messages through than Telegram's rates allow at once.
func TestTelegram_GrammYAboveTheRates_AllArrive(t *testing.T) {
	t.Parallel()
	w := startTelegram(t, telegram.Options{RateLimits: true})
	w.get(t, w.dm, "burst 8")
	refused := 0
	for _, c := range w.s.Calls() {
		if c.Method == "sendMessage" && c.Status == http.StatusTooManyRequests {
			refused++
		}
	}
	if all := w.dm.Messages(); len(all) != 9 || refused == 0 {
		t.Errorf("%d calls were refused, messages %+v", refused, all)
	}
}

func (w *onTelegram) testMessages(t *testing.T) {
	w.dm.Say(w.alice, "hello")
	w.done(t, "message").want(t, "text", "hello", "from.first_name", "Alice", "chat.type", "private")
	if l := w.get(t, w.dm, "say hi & <b>"); lastOnTelegram(t, w.dm).Text != "hi & <b>" || l.at("message.text") != "hi & <b>" {
		t.Errorf("%v, %+v", l, lastOnTelegram(t, w.dm))
	}
	w.team.Say(w.alice, "@"+w.s.Me().Username+" answer yes")
	l := w.done(t, "answer")
	if last := lastOnTelegram(t, w.team); last.Text != "yes" || last.ReplyTo == nil || last.ReplyTo.From.ID != w.alice.ID {
		t.Errorf("%v, %+v", l, last)
	}
	w.refused(t, w.dm, "answerTo 99999", "400", "message to be replied not found")
	w.get(t, w.dm, "answerOrSay 99999")
}

func (w *onTelegram) testEdits(t *testing.T) {
	w.get(t, w.dm, "edit final").want(t, "message.text", "final")
	last := lastOnTelegram(t, w.dm)
	if last.Text != "final" || last.EditDate == 0 {
		t.Errorf("%+v", last)
	}
	w.refused(t, w.dm, "edit draft", "400", "message is not modified")
	w.refused(t, w.dm, "editTo "+strconv.Itoa(w.dm.Say(w.alice, "mine").ID), "400", "message can't be edited")
	w.done(t, "message")
	w.refused(t, w.dm, "editTo 99999", "400", "message to edit not found")
	w.refused(t, w.dm, "caption "+strconv.Itoa(last.ID), "400", "there is no caption in the message to edit")
	m := w.dm.Say(w.alice, "first")
	w.done(t, "message")
	w.dm.Edit(w.alice, m.ID, "second")
	w.done(t, "edited").want(t, "text", "second", "message.message_id", strconv.Itoa(m.ID))
}

func (w *onTelegram) testDeletions(t *testing.T) {
	l := w.get(t, w.team, "delete")
	for _, m := range w.team.Messages() {
		if strconv.Itoa(m.ID) == l.at("id") {
			t.Errorf("%+v is not deleted", m)
		}
	}
	w.refused(t, w.team, "deleteId "+l.at("id"), "400", "message to delete not found")
	w.refused(t, w.team, "deleteId "+strconv.Itoa(w.team.Say(w.alice, "mine").ID), "400", "message can't be deleted")
	w.get(t, w.dm, "deleteId "+strconv.Itoa(w.dm.Say(w.alice, "mine too").ID))
	w.done(t, "message")
}

func (w *onTelegram) testTopics(t *testing.T) {
	topic := w.forum.Topic(w.alice, "Plans")
	w.done(t, "topic opened").want(t, "name", "Plans")
	w.get(t, topic, "say in the topic").want(t, "thread", strconv.Itoa(topic.ThreadID), "message.is_topic_message", "true")
	w.get(t, w.forum, "say in General").want(t, "thread", "")
	w.get(t, topic, "typing")
	topic.CloseTopic(true)
	w.refused(t, topic, "say too late", "400", "TOPIC_CLOSED")
	topic.CloseTopic(false)
	w.get(t, topic, "say again")
	w.forum.Promote(w.alice, true)
	w.done(t, "membership").want(t, "status", "administrator")
	topic.CloseTopic(true)
	w.get(t, topic, "say as an administrator")
	w.forum.Promote(w.alice, false)
	w.done(t, "membership").want(t, "status", "member")
	topic.DeleteTopic()
	w.refused(t, w.forum, "toTopic "+strconv.Itoa(topic.ThreadID), "400", "message thread not found")
}

func (w *onTelegram) testFiles(t *testing.T) {
	l := w.get(t, w.dm, "document some text")
	l.want(t, "content", "some text", "message.caption", "a note", "message.document.file_name", "note.txt", "message.document.mime_type", "text/plain")
	w.get(t, w.dm, "again "+l.at("message.document.file_id"))
	w.refused(t, w.dm, "again nothing", "400", "wrong file identifier")
	w.get(t, w.dm, "photo")
	w.refused(t, w.dm, "noPhoto", "400", "IMAGE_PROCESS_FAILED")
	w.dm.Document(w.alice, "list.txt", []byte("eggs"), "read")
	w.done(t, "read").want(t, "content", "eggs")
	data, _ := base64.StdEncoding.DecodeString(picture)
	w.dm.Photo(w.alice, data, "read")
	w.done(t, "read")
}

func (w *onTelegram) testButtons(t *testing.T) {
	w.get(t, w.dm, "buttons").want(t, "message.reply_markup.inline_keyboard", `[[{"callback_data":"yes","text":"Yes"},{"callback_data":"no","text":"No"},{"text":"Docs","url":"https://example.com"}]]`)
	m := lastOnTelegram(t, w.dm)
	w.dm.Press(w.alice, m.ID, "no")
	l := w.done(t, "press")
	l.want(t, "data", "no", "from", "Alice", "answered", "true", "message.text", "chosen: no", "message.reply_markup", "")
	if m := lastOnTelegram(t, w.dm); m.Text != "chosen: no" || len(m.Markup) > 0 {
		t.Errorf("%+v: an edit of the text without buttons removes them", m)
	}
	w.wait(t, "late answer").want(t, "error.code", "400", "error.description", "Bad Request: query is too old and response timeout expired or query ID is invalid")
	w.refused(t, w.dm, "longButton", "400", "BUTTON_DATA_INVALID")
}

func (w *onTelegram) testReactions(t *testing.T) {
	w.get(t, w.team, "react 👍")
	m := lastOnTelegram(t, w.team)
	if got := w.team.Reactions(m.ID)[w.s.Me().ID]; len(got) != 1 || got[0] != "👍" {
		t.Errorf("%v", got)
	}
	w.refused(t, w.team, "react 🫥", "400", "REACTION_INVALID")
	w.dm.React(w.alice, lastOnTelegram(t, w.dm).ID, "🔥")
	w.done(t, "reaction").want(t, "emojiAdded", `["🔥"]`)
	w.team.React(w.alice, m.ID, "🔥") // the bot is no administrator
	w.get(t, w.team, "say done")
	w.none(t, "reaction")
}

func (w *onTelegram) testPolls(t *testing.T) {
	l := w.get(t, w.team, "poll")
	w.s.AnswerPoll(w.alice, l.at("message.poll.id"), 1)
	w.done(t, "poll state").want(t, "closed", "false", "total", "1")
	w.done(t, "vote").want(t, "options", "[1]", "from", "Alice")
	w.get(t, w.team, "stopPoll "+l.at("id")).want(t, "poll.is_closed", "true", "poll.total_voter_count", "1")
	w.done(t, "poll state").want(t, "closed", "true")
	w.refused(t, w.team, "stopPoll "+l.at("id"), "400", "poll has already been closed")
	w.refused(t, w.team, "onePoll", "400", "poll must have at least")
}

func (w *onTelegram) testCommands(t *testing.T) {
	w.get(t, w.dm, "menu").want(t, "commands", `[{"command":"help","description":"what I can do"}]`)
	w.refused(t, w.dm, "badMenu", "400", "BOT_COMMAND_INVALID")
	w.team.Say(w.alice, "/help@"+w.s.Me().Username+" me now")
	w.done(t, "help").want(t, "match", "me now")
	w.team.Say(w.alice, "/help@another_bot")
	w.get(t, w.team, "typing").want(t, "done", "true")
	w.none(t, "help")
}

func (w *onTelegram) testChats(t *testing.T) {
	bob := w.s.User("Bob", "bob")
	w.team.Join(bob)
	w.done(t, "joined").want(t, "names", `["Bob"]`)
	w.refused(t, w.dm, "to 424242", "400", "chat not found")
	w.team.Leave(bob)
	w.s.Block(w.alice)
	w.done(t, "membership").want(t, "status", "kicked")
	w.refused(t, w.team, "to "+strconv.FormatInt(w.alice.ID, 10), "403", "bot was blocked by the user")
	w.s.Unblock(w.alice)
	w.done(t, "membership").want(t, "status", "member")
	w.team.Mute(true)
	w.refused(t, w.team, "say muted", "400", "not enough rights to send text messages to the chat")
	w.team.Mute(false)
	old := w.s.Group("Old", w.alice)
	next := old.Migrate(w.alice)
	l := w.ask(t, w.dm, "to "+strconv.FormatInt(old.ChatID, 10))
	l.want(t, "error.code", "400", "error.description", "Bad Request: group chat was upgraded to a supergroup chat",
		"error.parameters.migrate_to_chat_id", strconv.FormatInt(next.ChatID, 10))
	w.team.RemoveBot(w.alice)
	w.done(t, "membership").want(t, "status", "kicked")
	w.refused(t, w.dm, "to "+strconv.FormatInt(w.team.ChatID, 10), "403", "bot was kicked from the supergroup chat")
	w.team.AddBot(w.alice)
	w.done(t, "membership").want(t, "status", "member")
	w.done(t, "joined")
}

func (w *onTelegram) testTexts(t *testing.T) {
	w.get(t, w.dm, "long 4096")
	w.refused(t, w.dm, "long 4097", "400", "message is too long")
	w.refused(t, w.dm, "long 0", "400", "message text is empty")
	w.get(t, w.dm, "bold words").want(t, "message.entities", `[{"length":5,"offset":0,"type":"bold"}]`)
}

func (w *onTelegram) testPrivacy(t *testing.T) {
	w.team.Say(w.alice, "not for the bot")
	w.get(t, w.team, "say done")
	w.none(t, "message")
	w.team.Reply(w.alice, lastOnTelegram(t, w.team).ID, "for the bot")
	w.done(t, "message").want(t, "text", "for the bot", "message.reply_to_message.text", "done")
}

func (w *onTelegram) testErrors(t *testing.T) {
	w.s.InjectFault(telegram.Fault{Method: "sendMessage", RetryAfter: 1})
	l := w.ask(t, w.dm, "once flood")
	l.want(t, "error.code", "429", "error.description", "Too Many Requests: retry after 1", "error.parameters.retry_after", "1")
	w.s.InjectFault(telegram.Fault{Method: "sendMessage", RetryAfter: 1})
	w.get(t, w.dm, "say after the wait")
	w.s.InjectFault(telegram.Fault{Method: "sendMessage", Status: 502})
	w.get(t, w.dm, "say after an error of the server")
}

func (w *onTelegram) testToken(t *testing.T) {
	w.refused(t, w.dm, "stranger 123456:wrong_token", "401", "Unauthorized")
	w.refused(t, w.dm, "stranger malformed", "404", "Not Found")
}

func (w *onTelegram) testOutage(t *testing.T) {
	w.s.SetReachable(false)
	w.dm.Say(w.alice, "said meanwhile")
	w.s.SetReachable(true)
	w.done(t, "message").want(t, "text", "said meanwhile")
	until(t, w.s.WaitConfirmed)
	w.none(t, "message")
}

// Another program polls with the same token: the first one is refused, and grammY gives up.
func (w *onTelegram) testSecondPoller(t *testing.T) {
	until(t, w.s.WaitPolling)
	other := startBot(t, "telegram.mjs", "TOKEN="+w.s.Token(), "BASE="+w.s.Base())
	other.done(t, "connected")
	w.wait(t, "stopped").want(t, "error.code", "409",
		"error.description", "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
	w.dm.Say(w.alice, "hello")
	other.done(t, "message").want(t, "text", "hello")
}
