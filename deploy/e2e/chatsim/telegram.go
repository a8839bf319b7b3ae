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

// telegramPort is where it is served.
const telegramPort = "9090"

// Size is how many chats of a kind there are. Platforms take few messages a second into a chat, so
// that people who write much need many.
type Size struct{ DMs, Groups int }

// Telegram is a world whose people write in private, in groups and in topics of a forum.
type Telegram struct {
	*telegram.Server
	all  []Place
	who  map[string]telegram.User  // chat → who writes there
	room map[string]telegram.Place // by chat
	bots map[string]telegram.User  // chat → the other bot there
}

// NewTelegram makes one of a size. Some of the places are fussy, and one childless.
func NewTelegram(size Size, o telegram.Options) *Telegram {
	o.PrivacyOff = true
	t := &Telegram{
		Server: telegram.New(o), who: map[string]telegram.User{}, room: map[string]telegram.Place{}, bots: map[string]telegram.User{},
	}
	for i := range size.DMs {
		p := t.NewDM(fmt.Sprintf("Person %d", i))
		p.Childless, p.Fussy = i == 2, i >= size.DMs-2
		t.all = append(t.all, p)
	}
	for i := range size.Groups {
		p := t.NewGroup(fmt.Sprintf("Group %d", i))
		p.Fussy = i == size.Groups-1
		t.all = append(t.all, p)
	}
	left := t.NewThread("Left")
	right := t.topic(t.room[left.Chat], t.who[left.Chat], "Right")
	t.all = append(t.all, left, right)
	return t
}

// NewDM implements Rooms.
func (t *Telegram) NewDM(name string) Place {
	u := t.User(name, "")
	return t.add(t.DM(u), u)
}

// NewGroup implements Rooms.
func (t *Telegram) NewGroup(title string) Place {
	u := t.User("Bob", "bob")
	return t.add(t.Supergroup(title, u), u)
}

// NewThread implements Rooms.
func (t *Telegram) NewThread(title string) Place {
	u := t.User("Bob", "bob")
	forum := t.Forum(title+"'s forum", u)
	t.add(forum, u)
	return t.topic(forum, u, title)
}

func (t *Telegram) topic(forum telegram.Place, by telegram.User, name string) Place {
	return Place{Chat: telegramChat(forum.ChatID), Thread: strconv.Itoa(forum.Topic(by, name).ThreadID), Calls: true}
}

// add has somebody write in a chat. In a group the bot is an administrator, who is told of
// reactions.
func (t *Telegram) add(at telegram.Place, who telegram.User) Place {
	p := Place{Chat: telegramChat(at.ChatID), Calls: at.ChatID < 0}
	if p.Calls {
		at.AddBot(who)
		at.Promote(who, true)
	}
	t.who[p.Chat], t.room[p.Chat] = who, at
	return p
}

func telegramChat(id int64) string { return fmt.Sprintf("telegram:%d", id) }

// Serve implements Wire.
func (t *Telegram) Serve(host string) (env []string, err error) {
	base, err := t.Start(listenOn(host, telegramPort))
	return []string{"TELEGRAM_BOT_TOKEN=" + t.Token(), "TELEGRAM_API_URL=" + base}, err
}

// About implements World.
func (t *Telegram) About() About {
	return About{
		Daemon: "teled", Platform: "telegram", DMs: "[0-9]*",
		Cut: func(content string) (parts []string) {
			for _, p := range render.Telegram(content, 4096) { // UTF-16 units, as the Bot API allows
				parts = append(parts, p.Text)
			}
			return parts
		},
		Token: "TELEGRAM_BOT_TOKEN", Surfaces: Surfaces{DM: "telegram-dm", Group: "telegram-group", Thread: "telegram-topic"},
		Replies: true,
	}
}

// Places implements People.
func (t *Telegram) Places() []Place { return t.all }

// Do implements People. Telegram tells no bot of a deletion.
func (t *Telegram) Do(a Act) (id string, err error) {
	who, in := t.who[a.Chat], t.room[a.Chat]
	in.ThreadID, _ = strconv.Atoi(a.Thread) // 0 outside one
	if a.Bot {
		who = t.otherBot(a.Chat)
	}
	target, _ := strconv.Atoi(a.Target)
	d := telegram.Draft{Text: a.Text}
	switch a.Verb {
	case msg.VerbDelete:
		return "", nil
	case msg.VerbEdit:
		_, err = in.Revise(who, target, a.Text)
		return "", err
	case msg.VerbReaction:
		return "", in.SetReactions(who, target, a.Text)
	case msg.VerbReply:
		d.ReplyTo = target
	case msg.VerbMention:
		d.Text = "@" + t.Me().Username + " " + a.Text
	}
	if a.File != nil {
		d.Attachment = &telegram.Attachment{Kind: "document", Name: a.File.Name, Data: a.File.Data}
	}
	m, err := in.Post(who, d)
	return strconv.Itoa(m.ID), err
}

func (t *Telegram) otherBot(chat string) telegram.User {
	bot, there := t.bots[chat]
	if !there {
		bot = t.OtherBot("Other", "other_bot")
		t.room[chat].Join(bot)
		t.bots[chat] = bot
	}
	return bot
}

// Quiet implements People.
func (t *Telegram) Quiet() bool { return t.Pending() == 0 }

// Arrived implements Wire.
func (t *Telegram) Arrived() (all []Arrival) {
	for _, c := range t.Sent() {
		if c.Method != "sendMessage" && len(c.Files) == 0 {
			continue
		}
		for _, m := range c.Messages {
			a := Arrival{ID: strconv.Itoa(m.ID), Chat: telegramChat(m.Chat.ID), Text: c.Text, At: c.At}
			if m.IsTopic {
				a.Thread = strconv.Itoa(m.Thread)
			}
			if c.ReplyTo != 0 {
				a.ReplyTo = strconv.Itoa(c.ReplyTo)
			}
			for _, f := range c.Files {
				a.Files = append(a.Files, File{f.Name, f.Data})
			}
			all = append(all, a)
		}
	}
	return all
}

// Typed implements Wire.
func (t *Telegram) Typed(p Place) bool {
	return slices.ContainsFunc(t.Sent(), func(c telegram.Call) bool {
		thread := ""
		if c.ThreadID != 0 {
			thread = strconv.Itoa(c.ThreadID)
		}
		return c.Method == "sendChatAction" && telegramChat(c.ChatID) == p.Chat && thread == p.Thread
	})
}

// Hasty implements Wire.
func (t *Telegram) Hasty() (n int) {
	for _, c := range t.Calls() {
		if c.Status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// Upset implements Trouble.
func (t *Telegram) Upset(random *rand.Rand) string {
	n := 1 + random.IntN(3)
	faults := []telegram.Fault{
		{Method: "sendMessage", Status: 502, After: true},
		{Method: "sendMessage", Status: 500},
		{Method: "sendMessage", RetryAfter: n},
		{Method: "sendMessage", Drop: true},
		{Method: "sendMessage", Drop: true, After: true},
		{Method: "sendMessage", Body: "<html>gateway</html>", After: true},
		{Method: "getUpdates", Status: 502},
		{Method: "getUpdates", Drop: true, After: true},
		{Method: "getUpdates", Body: "{"},
		{Method: "*", Delay: time.Second},
	}
	if i := random.IntN(len(faults) + 4); i < len(faults) {
		f := faults[i]
		f.Times = n
		t.Fail(f)
		return fmt.Sprintf("%s ×%d: %s", f.Method, n, faultName(f.Drop, f.Body != "", f.After, f.RetryAfter > 0, f.Status))
	}
	switch random.IntN(4) {
	case 0:
		t.Twice(5 * n)
		return "updates come twice"
	case 1:
		t.Reversed(n)
		return "updates come in disorder"
	case 2:
		t.Redeliver(5 * n)
		return "updates come again"
	}
	t.Inject(`"message": {"message_id": "none"}`)
	return "an update that nobody can read"
}

// Away implements Trouble.
func (t *Telegram) Away(gone bool) {
	if gone {
		t.Unreachable()
	} else {
		t.Reachable()
	}
}

// Break implements Trouble.
func (t *Telegram) Break() {
	t.Unreachable()
	t.Reachable()
}

// Disorder implements Trouble.
func (t *Telegram) Disorder(n int) {
	t.Twice(n)
	t.Reversed(n)
	t.Redeliver(n)
}

// Spoil implements Trouble.
func (t *Telegram) Spoil(f Fault) {
	t.Fail(telegram.Fault{
		Method: "sendMessage", Status: f.Status, RetryAfter: int(f.RetryAfter / time.Second), Drop: f.Drop, After: f.After,
	})
}

// Expire implements Trouble.
func (t *Telegram) Expire(expired bool) {
	if !expired {
		t.Heal()
		return
	}
	t.Fail(telegram.Fault{Method: "*", Times: -1, Status: http.StatusUnauthorized})
	t.Break()
}

// Deaths implements Trouble.
func (t *Telegram) Deaths() []Death {
	blocked, gone, kicked, deleted := t.NewDM("Ann"), t.NewDM("Ben"), t.NewGroup("Kicked"), t.NewGroup("Deleted")
	topic := t.NewThread("Passing")
	return []Death{
		{"the bot is blocked", blocked, func() { t.Block(t.who[blocked.Chat]) }},
		{"an account is deleted", gone, func() { t.Deactivate(t.who[gone.Chat]) }},
		{"the bot is kicked", kicked, func() { t.room[kicked.Chat].RemoveBot(t.who[kicked.Chat]) }},
		{"a group is deleted", deleted, func() { t.room[deleted.Chat].DeleteGroup() }},
		{"a topic is deleted", topic, func() {
			thread, _ := strconv.Atoi(topic.Thread) // as we have made it
			t.Place(t.room[topic.Chat].ChatID, thread).DeleteTopic()
		}},
	}
}
