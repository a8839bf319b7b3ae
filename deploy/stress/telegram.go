package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/fakeplatform/telegram"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
)

// How many chats there are: Telegram takes one message a second into a chat, and fewer into a
// group, so that people who write much need many of them.
const (
	telegramDMs    = 30
	telegramGroups = 8
)

// telegramWorld is a Telegram whose people write in private, in groups and in topics of a forum.
type telegramWorld struct {
	*telegram.Server
	all  []place
	who  map[string]telegram.User  // chat → who writes there
	room map[string]telegram.Place // by chat
}

func newTelegramWorld() *telegramWorld {
	w := &telegramWorld{
		Server: telegram.New(telegram.Options{PrivacyOff: true}),
		who:    map[string]telegram.User{}, room: map[string]telegram.Place{},
	}
	for i := range telegramDMs {
		u := w.User(fmt.Sprintf("Person%d", i), "")
		w.add(w.DM(u), u, place{childless: i == 2, fussy: i >= telegramDMs-2})
	}
	u := w.User("Bob", "bob")
	for i := range telegramGroups {
		g := w.Supergroup(fmt.Sprintf("Group %d", i), u)
		g.AddBot(u)
		g.Promote(u, true)
		w.add(g, u, place{calls: true, fussy: i == telegramGroups-1})
	}
	forum := w.Forum("Forum", u)
	forum.AddBot(u)
	for _, name := range []string{"Left", "Right"} {
		w.add(forum.Topic(u, name), u, place{calls: true})
	}
	return w
}

func (w *telegramWorld) add(at telegram.Place, who telegram.User, p place) {
	p.chat = telegramChat(at.ChatID)
	if at.ThreadID != 0 {
		p.thread = strconv.Itoa(at.ThreadID)
	}
	w.all, w.who[p.chat], w.room[p.chat] = append(w.all, p), who, w.Place(at.ChatID, 0)
}

func telegramChat(id int64) string { return fmt.Sprintf("telegram:%d", id) }

func (w *telegramWorld) serve(host string) (env []string, err error) {
	base, err := w.Start(listenOn(host))
	return []string{"TELEGRAM_BOT_TOKEN=" + w.Token(), "TELEGRAM_API_URL=" + base}, err
}

func (w *telegramWorld) close() error { return w.Close() }

func (w *telegramWorld) adapter() (daemon, platform string) { return "teled", "telegram" }

func (w *telegramWorld) places() []place { return w.all }

// do implements world. Telegram tells no bot of a deletion.
func (w *telegramWorld) do(a act) (id string, err error) {
	who, in := w.who[a.chat], w.room[a.chat]
	in.ThreadID, _ = strconv.Atoi(a.thread) // 0 outside one
	target, _ := strconv.Atoi(a.target)
	switch a.verb {
	case msg.VerbDelete:
		return "", nil
	case msg.VerbEdit:
		_, err = in.Revise(who, target, a.text)
		return "", err
	case msg.VerbReaction:
		return "", in.SetReactions(who, target, a.text)
	case msg.VerbMention:
		a.text = "@" + w.Me().Username + " " + a.text
	}
	m, err := in.Post(who, telegram.Draft{Text: a.text})
	return strconv.Itoa(m.ID), err
}

func (w *telegramWorld) quiet() bool { return w.Pending() == 0 }

func (w *telegramWorld) arrived() (all []arrival) {
	for _, c := range w.Sent() {
		for _, m := range c.Messages {
			if c.Method != "sendMessage" {
				continue
			}
			a := arrival{id: strconv.Itoa(m.ID), chat: telegramChat(m.Chat.ID), text: m.Text}
			if m.IsTopic {
				a.thread = strconv.Itoa(m.Thread)
			}
			all = append(all, a)
		}
	}
	return all
}

func (w *telegramWorld) cut(content string) (parts []string) {
	for _, p := range render.Telegram(content, 4096) { // UTF-16 units, as the Bot API allows
		parts = append(parts, p.Text)
	}
	return parts
}

func (w *telegramWorld) again(text string) string { return "(possibly sent twice) " + text }

// upset implements world.
func (w *telegramWorld) upset(random *rand.Rand) string {
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
		w.Fail(f)
		return strings.TrimSpace(fmt.Sprintf("%s ×%d: %s", f.Method, n, faultName(f)))
	}
	switch random.IntN(4) {
	case 0:
		w.Twice(5 * n)
		return "updates come twice"
	case 1:
		w.Reversed(n)
		return "updates come in disorder"
	case 2:
		w.Redeliver(5 * n)
		return "updates come again"
	}
	w.Inject(`"message": {"message_id": "none"}`)
	return "an update that nobody can read"
}

func faultName(f telegram.Fault) string {
	name := "slow"
	switch {
	case f.Drop:
		name = "breaks off"
	case f.Body != "":
		name = "nonsense"
	case f.RetryAfter > 0:
		name = "429"
	case f.Status > 0:
		name = strconv.Itoa(f.Status)
	}
	if f.After {
		name += " once done"
	}
	return name
}

func (w *telegramWorld) away(gone bool) {
	if gone {
		w.Unreachable()
	} else {
		w.Reachable()
	}
}
