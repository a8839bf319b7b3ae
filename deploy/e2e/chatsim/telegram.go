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

// Size is the number of chats by kind. Platforms accept few messages per second and chat, so high
// load needs many chats.
type Size struct{ DMs, Groups int }

// Telegram is a Platform whose users write in DMs, groups and topics of a forum.
type Telegram struct {
	*telegram.Server
	all   []Conversation
	users map[string]telegram.User  // by JID
	rooms map[string]telegram.Place // by JID
	bots  map[string]telegram.User  // the other bot there, by JID
}

// NewTelegram creates a platform of a size. In some conversations users mutate messages; one has no
// child group.
func NewTelegram(size Size, o telegram.Options) *Telegram {
	o.PrivacyOff = true
	t := &Telegram{
		Server: telegram.New(o), users: map[string]telegram.User{}, rooms: map[string]telegram.Place{},
		bots: map[string]telegram.User{},
	}
	for i := range size.DMs {
		c := t.NewDM(fmt.Sprintf("Person %d", i))
		c.NoChildGroup, c.Mutates = i == 2, i >= size.DMs-2
		t.all = append(t.all, c)
	}
	for i := range size.Groups {
		c := t.NewGroup(fmt.Sprintf("Group %d", i))
		c.Mutates = i == size.Groups-1
		t.all = append(t.all, c)
	}
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
	base, err := t.Start(listenOn(host, telegramPort))
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

// Conversations implements Users.
func (t *Telegram) Conversations() []Conversation { return t.all }

// Do implements Users. Telegram sends bots no event for a deletion.
func (t *Telegram) Do(a Action) (id string, err error) {
	user, in := t.users[a.Chat], t.rooms[a.Chat]
	in.ThreadID, _ = strconv.Atoi(a.Thread) // 0 outside one
	if a.Bot {
		user = t.otherBot(a.Chat)
	}
	target, _ := strconv.Atoi(a.Target)
	d := telegram.Draft{Text: a.Text}
	switch a.Verb {
	case msg.VerbDelete:
		return "", nil
	case msg.VerbEdit:
		_, err = in.TryEdit(user, target, a.Text)
		return "", err
	case msg.VerbReaction:
		return "", in.SetReactions(user, target, a.Text)
	case msg.VerbReply:
		d.ReplyTo = target
	case msg.VerbMention:
		d.Text = "@" + t.Me().Username + " " + a.Text
	}
	if a.File != nil {
		d.Attachment = &telegram.Attachment{Kind: "document", Name: a.File.Name, Data: a.File.Data}
		if a.File.Voice {
			d.Attachment.Kind, d.Attachment.MIME = "voice", "audio/ogg"
		}
	}
	m, err := in.Post(user, d)
	return strconv.Itoa(m.ID), err
}

func (t *Telegram) otherBot(chat string) telegram.User {
	bot, ok := t.bots[chat]
	if !ok {
		bot = t.OtherBot("Other", "other_bot")
		t.rooms[chat].Join(bot)
		t.bots[chat] = bot
	}
	return bot
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

// message is a message of a chat by its id, with an error if there is none.
func (t *Telegram) message(c Conversation, id string) (telegram.Message, error) {
	for _, m := range t.rooms[c.Chat].Messages() {
		if strconv.Itoa(m.ID) == id {
			return m, nil
		}
	}
	return telegram.Message{}, fmt.Errorf("no message %s in %s", id, c.Chat)
}

// Buttons implements Presser.
func (t *Telegram) Buttons(c Conversation, message string) (labels []string, text string) {
	m, _ := t.message(c, message) // none has no buttons
	labels, _, _ = sorted(m.Buttons(), "")
	return labels, m.Text
}

// Press implements Presser.
func (t *Telegram) Press(c Conversation, message, label string, other bool) (press string, err error) {
	by := t.users[c.Chat]
	if other {
		by = t.User("Eve", "")
		t.rooms[c.Chat].Join(by)
	}
	m, err := t.message(c, message)
	if err != nil {
		return "", err
	}
	_, data, err := sorted(m.Buttons(), label)
	if err != nil {
		return "", err
	}
	return t.rooms[c.Chat].TryPress(by, m.ID, data)
}

// ForgePress presses a button with any data, as a modified app does.
func (t *Telegram) ForgePress(c Conversation, message, data string) (press string, err error) {
	m, err := t.message(c, message)
	if err != nil {
		return "", err
	}
	return t.rooms[c.Chat].ForgePress(t.users[c.Chat], m.ID, data), nil
}

// Stoppable implements Presser.
func (t *Telegram) Stoppable(c Conversation) (messages []string) {
	for _, m := range t.rooms[c.Chat].Messages() {
		if hasStop(m.Buttons()) {
			messages = append(messages, strconv.Itoa(m.ID))
		}
	}
	return messages
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

// Arrivals implements Transport.
func (t *Telegram) Arrivals() []Arrival { return t.shown().arrivals() }

// LeftPreviews implements Transport.
func (t *Telegram) LeftPreviews() []Arrival { return t.shown().leftPreviews() }

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
func (t *Telegram) RateLimited() (n int) {
	for _, c := range t.Calls() {
		if c.Status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// InjectRandomFault implements FaultInjector.
func (t *Telegram) InjectRandomFault(random *rand.Rand) string {
	n := 1 + random.IntN(3)
	faults := []telegram.Fault{
		{Method: "sendMessage", Status: 502, After: true},
		{Method: "sendMessage", Status: 500},
		{Method: "sendMessage", RetryAfter: n},
		{Method: "sendMessage", Drop: true},
		{Method: "sendMessage", Drop: true, After: true},
		{Method: "sendMessage", Body: "<html>gateway</html>", After: true},
		{Method: "editMessageText", Status: 502, After: true},
		{Method: "editMessageText", RetryAfter: n},
		{Method: "editMessageText", Drop: true},
		{Method: "editMessageText", Drop: true, After: true},
		{Method: "editMessageText", Delay: slowEdit},
		{Method: "deleteMessage", Status: 500},
		{Method: "deleteMessage", Drop: true, After: true},
		{Method: "getUpdates", Status: 502},
		{Method: "getUpdates", Drop: true, After: true},
		{Method: "getUpdates", Body: "{"},
		{Method: "getFile", Drop: true},
		{Method: "download", Status: 503},
		{Method: "*", Delay: time.Second},
	}
	if i := random.IntN(len(faults) + 4); i < len(faults) {
		f := faults[i]
		f.Times = n
		t.InjectFault(f)
		return fmt.Sprintf("%s ×%d: %s", f.Method, n, faultName(f.Drop, f.Body != "", f.After, f.RetryAfter > 0,
			f.Status))
	}
	switch random.IntN(4) {
	case 0:
		t.DuplicateNext(5 * n)
		return "duplicate updates"
	case 1:
		t.ReverseNext(1 + n)
		return "reordered updates"
	case 2:
		t.Redeliver(5 * n)
		return "redelivered updates"
	}
	t.Inject(`"message": {"message_id": "none"}`)
	return "malformed update"
}

// SetListening implements Network.
func (t *Telegram) SetListening(ok bool) error { return setListening(t, ok) }

// DropConnections implements Network.
func (t *Telegram) DropConnections() {
	t.SetReachable(false)
	t.SetReachable(true)
}

// DuplicateAndReorder implements FaultInjector.
func (t *Telegram) DuplicateAndReorder(n int) {
	t.DuplicateNext(n)
	t.ReverseNext(n)
	t.Redeliver(n)
}

// FailNextSend implements FaultInjector.
func (t *Telegram) FailNextSend(f Fault) {
	t.InjectFault(telegram.Fault{
		Method: "sendMessage", Status: f.Status, RetryAfter: int(f.RetryAfter / time.Second), Drop: f.Drop,
		After: f.After,
	})
}

// RefuseButtons implements Presser.
func (t *Telegram) RefuseButtons() {
	t.InjectFault(telegram.Fault{Method: "sendMessage", Status: http.StatusBadRequest,
		Description: "Bad Request: BUTTON_DATA_INVALID"})
}

// RefuseEdits implements FaultInjector.
func (t *Telegram) RefuseEdits() {
	t.InjectFault(telegram.Fault{Method: "editMessageText", RetryAfter: 1, Times: -1})
}

// SetTokenValid implements FaultInjector.
func (t *Telegram) SetTokenValid(ok bool) {
	if ok {
		t.ClearFaults()
		return
	}
	t.InjectFault(telegram.Fault{Method: "*", Times: -1, Status: http.StatusUnauthorized})
	t.DropConnections()
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
