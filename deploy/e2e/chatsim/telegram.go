package chatsim

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/testkit/fakes/telegram"
)

// telegramPort is the port of the fake Telegram.
const telegramPort = "9090"

// telegramText is how long teled makes a message, in UTF-16 units: the Bot API allows 4,096.
const telegramText = 4096 - markRoom

// Telegram is a Platform whose users write in DMs, groups and topics of a forum.
type Telegram struct {
	*telegram.Server
	sim[telegram.User]
	rooms map[string]telegram.Place // by JID
}

// NewTelegram creates a platform of a size.
func NewTelegram(size Size, o telegram.Options) *Telegram {
	o.PrivacyOff = true
	t := &Telegram{Server: telegram.New(o), rooms: map[string]telegram.Place{}}
	t.sim = newSim[telegram.User](t)
	t.populate(size)
	left := t.NewThread("Left")
	right := t.topic(t.rooms[left.Chat], t.users[left.Chat], "Right")
	t.all = append(t.all, left, right)
	return t
}

// NewDM implements ConversationMaker.
func (t *Telegram) NewDM(name string) Conversation {
	u := t.User(name, "")
	return t.add(t.DM(u), u)
}

// NewGroup implements ConversationMaker.
func (t *Telegram) NewGroup(title string) Conversation {
	u := t.User("Bob", "bob")
	return t.add(t.Supergroup(title, u), u)
}

// Appoint implements ConversationMaker.
func (*Telegram) Appoint(Conversation) {}

// NewThread implements ConversationMaker.
func (t *Telegram) NewThread(title string) Conversation {
	u := t.User("Bob", "bob")
	forum := t.Forum(title+"'s forum", u)
	t.add(forum, u)
	return t.topic(forum, u, title)
}

func (t *Telegram) topic(forum telegram.Place, by telegram.User, name string) Conversation {
	return Conversation{Chat: telegramChat(forum.ChatID), Thread: strconv.Itoa(forum.Topic(by, name).ThreadID),
		NeedsMention: true}
}

// add makes a user write in a chat. In a group the bot is an administrator, since only those get
// reactions.
func (t *Telegram) add(at telegram.Place, user telegram.User) Conversation {
	c := Conversation{Chat: telegramChat(at.ChatID), NeedsMention: at.ChatID < 0}
	if c.NeedsMention {
		at.AddBot(user)
		at.Promote(user, true)
	}
	t.users[c.Chat], t.rooms[c.Chat] = user, at
	return c
}

func telegramChat(id int64) string { return fmt.Sprintf("telegram:%d", id) }

// Serve implements Transport.
func (t *Telegram) Serve(host string) (env []string, err error) {
	base, err := t.serve(host, telegramPort)
	return []string{"TELEGRAM_BOT_TOKEN=" + t.Token(), "TELEGRAM_API_URL=" + base}, err
}

// Info implements Platform.
func (t *Telegram) Info() Info {
	return Info{
		Daemon: "teled", Platform: "telegram", DMPattern: "[0-9]*",
		Split: func(content string) (parts []string) {
			for _, p := range render.Telegram(content, telegramText) {
				parts = append(parts, p.Text)
			}
			return parts
		},
		TokenEnv: "TELEGRAM_BOT_TOKEN", Surfaces: Surfaces{DM: "telegram-dm", Group: "telegram-group",
			Thread: "telegram-topic"},
		LinksReplies: true,
	}
}

func (t *Telegram) mention() string { return "@" + t.Me().Username }

func (t *Telegram) post(user telegram.User, a Action) (id string, err error) {
	d := telegram.Draft{Text: a.Text}
	if a.Verb == msg.VerbReply {
		d.ReplyTo, _ = strconv.Atoi(a.Target)
	}
	if a.File != nil {
		d.Attachment = &telegram.Attachment{Kind: "document", Name: a.File.Name, Data: a.File.Data}
		if a.File.Voice {
			d.Attachment.Kind, d.Attachment.MIME = "voice", "audio/ogg"
		}
	}
	in := t.rooms[a.Chat]
	in.ThreadID, _ = strconv.Atoi(a.Thread) // 0 outside one
	m, err := in.Post(user, d)
	return strconv.Itoa(m.ID), err
}

// change implements seam. Telegram sends bots no event for a deletion.
func (t *Telegram) change(user telegram.User, a Action) (err error) {
	target, _ := strconv.Atoi(a.Target)
	switch a.Verb {
	case msg.VerbEdit:
		_, err = t.rooms[a.Chat].TryEdit(user, target, a.Text)
	case msg.VerbReaction:
		err = t.rooms[a.Chat].SetReactions(user, target, a.Text)
	}
	return err
}

func (t *Telegram) bot(c Conversation) telegram.User {
	bot := t.OtherBot("Other", "other_bot")
	t.rooms[c.Chat].Join(bot)
	return bot
}

func (t *Telegram) stranger(c Conversation) telegram.User {
	eve := t.User("Eve", "")
	t.rooms[c.Chat].Join(eve)
	return eve
}

// Vote implements Users.
func (t *Telegram) Vote(c Conversation, poll string, option int) error {
	for _, m := range t.rooms[c.Chat].Messages() {
		if m.Poll != nil && strconv.Itoa(m.ID) == poll {
			t.AnswerPoll(t.users[c.Chat], m.Poll.ID, option-1)
			return nil
		}
	}
	return fmt.Errorf("no poll %s in %s", poll, c.Chat)
}

func (t *Telegram) messages(c Conversation) (all []message) {
	for _, m := range t.rooms[c.Chat].Messages() {
		all = append(all, message{strconv.Itoa(m.ID), m.Text, m.Buttons()})
	}
	return all
}

func (t *Telegram) press(by telegram.User, c Conversation, message, data string) (press string, err error) {
	id, _ := strconv.Atoi(message)
	return t.rooms[c.Chat].TryPress(by, id, data)
}

// BotReactions implements Reactor.
func (t *Telegram) BotReactions(c Conversation, message string) []string {
	id, _ := strconv.Atoi(message)
	return t.rooms[c.Chat].Reactions(id)[t.Me().ID]
}

// ForbidReactions implements Reactor.
func (t *Telegram) ForbidReactions(c Conversation) { t.rooms[c.Chat].AllowReactions("👍") }

// PressAnswer implements Presser.
func (t *Telegram) PressAnswer(_ Conversation, press string) (text string, ok bool) {
	a, ok := t.Server.PressAnswer(press)
	return a.Text, ok
}

// AllAcknowledged implements Users.
func (t *Telegram) AllAcknowledged() bool { return t.Pending() == 0 }

// Connected implements Transport.
func (t *Telegram) Connected() bool { return t.Polling() }

func (t *Telegram) shown() *shown {
	all := &shown{}
	for _, call := range t.Sent() {
		switch call.Method {
		case "editMessageText":
			all.changed(telegramChat(call.ChatID), strconv.Itoa(call.MessageID), call.Text, call.At)
		case "deleteMessage":
			all.deleted(telegramChat(call.ChatID), strconv.Itoa(call.MessageID))
		}
		if call.Method != "sendMessage" && call.Method != "sendPoll" && len(call.Files) == 0 {
			continue
		}
		for _, m := range call.Messages {
			a := Arrival{ID: strconv.Itoa(m.ID), Chat: telegramChat(m.Chat.ID),
				Text: call.Text + call.Params["question"], At: call.At}
			if m.IsTopic {
				a.Thread = strconv.Itoa(m.Thread)
			}
			if call.ReplyTo != 0 {
				a.ReplyTo = strconv.Itoa(call.ReplyTo)
			}
			for _, f := range call.Files {
				a.Files = append(a.Files, File{Name: f.Name, Data: f.Data})
			}
			all.made(a)
		}
	}
	return all
}

// ShowsWorking implements Transport.
func (t *Telegram) ShowsWorking(c Conversation) bool {
	return slices.ContainsFunc(t.Sent(), func(call telegram.Call) bool {
		thread := ""
		if call.ThreadID != 0 {
			thread = strconv.Itoa(call.ThreadID)
		}
		return call.Method == "sendChatAction" && telegramChat(call.ChatID) == c.Chat && thread == c.Thread
	})
}

// RateLimited implements Transport.
func (t *Telegram) RateLimited() int {
	return limited(t.Calls(), func(c telegram.Call) int { return c.Status })
}

func (t *Telegram) calls() calls {
	return calls{"sendMessage", "editMessageText", "deleteMessage", "*"}
}

func (t *Telegram) inject(f fault) {
	t.InjectFault(telegram.Fault{Method: f.call, Times: f.times, After: f.after, Delay: f.delay, Drop: f.drop,
		Body: f.body, Status: f.status, Description: f.err, RetryAfter: int(f.retryAfter / time.Second)})
}

func (t *Telegram) faults(time.Duration) []fault {
	return []fault{
		{call: "deleteMessage", status: 500},
		{call: "getUpdates", status: 502},
		{call: "getUpdates", drop: true, after: true},
		{call: "getUpdates", body: "{"},
		{call: "getFile", drop: true},
		{call: "download", status: 503},
	}
}

func (t *Telegram) events(n int, _ *rand.Rand) events {
	return events{
		duplicate: func() { t.DuplicateNext(n) },
		reorder:   func() { t.ReverseNext(1 + n) },
		redeliver: func() { t.Redeliver(n) },
		malformed: func() { t.Inject(`"message": {"message_id": "none"}`) },
	}
}

// RefuseButtons implements Presser.
func (t *Telegram) RefuseButtons() {
	t.inject(fault{call: "sendMessage", status: http.StatusBadRequest, err: "Bad Request: BUTTON_DATA_INVALID"})
}

// SetTokenValid implements FaultInjector.
func (t *Telegram) SetTokenValid(ok bool) {
	if ok {
		t.ClearFaults()
		return
	}
	t.inject(fault{call: "*", times: -1, status: http.StatusUnauthorized})
	t.SetReachable(false) // drops the connections
	t.SetReachable(true)
}

// Removals implements FaultInjector.
func (t *Telegram) Removals() []Removal {
	blocked, gone, kicked, deleted := t.NewDM("Ann"), t.NewDM("Ben"), t.NewGroup("Kicked"), t.NewGroup("Deleted")
	topic := t.NewThread("Temporary")
	return []Removal{
		{Name: "the bot is blocked", Conversation: blocked, Apply: func() { t.Block(t.users[blocked.Chat]) }},
		{Name: "an account is deleted", Conversation: gone, Apply: func() { t.Deactivate(t.users[gone.Chat]) }},
		{Name: "the bot is kicked", Conversation: kicked,
			Apply: func() { t.rooms[kicked.Chat].RemoveBot(t.users[kicked.Chat]) }},
		{Name: "a group is deleted", Conversation: deleted, Apply: func() { t.rooms[deleted.Chat].DeleteGroup() }},
		{Name: "a topic is deleted", Conversation: topic, LeavesChat: true, Apply: func() {
			thread, _ := strconv.Atoi(topic.Thread) // valid, since topic has formatted it
			t.Place(t.rooms[topic.Chat].ChatID, thread).DeleteTopic()
		}},
	}
}
