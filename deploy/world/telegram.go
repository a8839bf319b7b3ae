package world

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"arizuko/pkg/fakeplatform/telegram"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
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
}

// NewTelegram makes one of a size. Some of the places are fussy, and one childless.
func NewTelegram(size Size, o telegram.Options) *Telegram {
	o.PrivacyOff = true
	t := &Telegram{Server: telegram.New(o), who: map[string]telegram.User{}, room: map[string]telegram.Place{}}
	for i := range size.DMs {
		u := t.User(fmt.Sprintf("Person %d", i), "")
		t.add(t.DM(u), u, Place{Childless: i == 2, Fussy: i >= size.DMs-2})
	}
	u := t.User("Bob", "bob")
	for i := range size.Groups {
		g := t.Supergroup(fmt.Sprintf("Group %d", i), u)
		g.AddBot(u)
		g.Promote(u, true)
		t.add(g, u, Place{Calls: true, Fussy: i == size.Groups-1})
	}
	forum := t.Forum("Forum", u)
	forum.AddBot(u)
	for _, name := range []string{"Left", "Right"} {
		t.add(forum.Topic(u, name), u, Place{Calls: true})
	}
	return t
}

func (t *Telegram) add(at telegram.Place, who telegram.User, p Place) {
	p.Chat = telegramChat(at.ChatID)
	if at.ThreadID != 0 {
		p.Thread = strconv.Itoa(at.ThreadID)
	}
	t.all, t.who[p.Chat], t.room[p.Chat] = append(t.all, p), who, t.Place(at.ChatID, 0)
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
	}
}

// Places implements People.
func (t *Telegram) Places() []Place { return t.all }

// Do implements People. Telegram tells no bot of a deletion.
func (t *Telegram) Do(a Act) (id string, err error) {
	who, in := t.who[a.Chat], t.room[a.Chat]
	in.ThreadID, _ = strconv.Atoi(a.Thread) // 0 outside one
	target, _ := strconv.Atoi(a.Target)
	switch a.Verb {
	case msg.VerbDelete:
		return "", nil
	case msg.VerbEdit:
		_, err = in.Revise(who, target, a.Text)
		return "", err
	case msg.VerbReaction:
		return "", in.SetReactions(who, target, a.Text)
	case msg.VerbMention:
		a.Text = "@" + t.Me().Username + " " + a.Text
	}
	m, err := in.Post(who, telegram.Draft{Text: a.Text})
	return strconv.Itoa(m.ID), err
}

// Quiet implements People.
func (t *Telegram) Quiet() bool { return t.Pending() == 0 }

// Arrived implements Wire.
func (t *Telegram) Arrived() (all []Arrival) {
	for _, c := range t.Sent() {
		for _, m := range c.Messages {
			if c.Method != "sendMessage" {
				continue
			}
			a := Arrival{ID: strconv.Itoa(m.ID), Chat: telegramChat(m.Chat.ID), Text: m.Text, At: c.At}
			if m.IsTopic {
				a.Thread = strconv.Itoa(m.Thread)
			}
			all = append(all, a)
		}
	}
	return all
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

// Upset implements Wire.
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

// Away implements Wire.
func (t *Telegram) Away(gone bool) {
	if gone {
		t.Unreachable()
	} else {
		t.Reachable()
	}
}
