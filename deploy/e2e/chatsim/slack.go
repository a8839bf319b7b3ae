package chatsim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/testkit/fakes/slack"
)

// slackPort is where it is served.
const slackPort = "9092"

// Slack is a world whose people write in DMs, in channels and in a thread.
type Slack struct {
	*slack.Server
	all  []Place
	who  map[string]slack.User // chat → who writes there
	bots map[string]slack.User // chat → the other bot there
}

// NewSlack makes one of a size. Some of the places are fussy, and one childless.
func NewSlack(size Size, o slack.Options) *Slack {
	s := &Slack{Server: slack.New(o), who: map[string]slack.User{}, bots: map[string]slack.User{}}
	for i := range size.DMs {
		p := s.NewDM(fmt.Sprintf("Person %d", i))
		p.Childless, p.Fussy = i == 2, i >= size.DMs-2
		s.all = append(s.all, p)
	}
	for i := range size.Groups {
		p := s.NewGroup(fmt.Sprintf("channel-%d", i))
		p.Fussy = i == size.Groups-1
		s.all = append(s.all, p)
	}
	s.all = append(s.all, s.NewThread("talk"))
	return s
}

// NewDM implements Rooms.
func (s *Slack) NewDM(name string) Place {
	u := s.User(name, strings.ToLower(name))
	return s.add(s.DM(u), u, false)
}

// NewGroup implements Rooms.
func (s *Slack) NewGroup(title string) Place {
	u := s.User("Bob", "bob")
	return s.add(s.Channel(title, u), u, true)
}

// NewThread implements Rooms.
func (s *Slack) NewThread(title string) Place {
	u := s.User("Bob", "bob")
	talk := s.Channel(title, u)
	return s.add(talk.Thread(talk.Say(u, "what about this?").TS), u, true)
}

func (s *Slack) add(at slack.Place, who slack.User, calls bool) Place {
	p := Place{Chat: slackChat(at.ChannelID), Thread: at.ThreadTS, Calls: calls}
	s.who[p.Chat] = who
	return p
}

// at is where a place is on Slack.
func (s *Slack) at(p Place) slack.Place {
	return s.Place(strings.TrimPrefix(p.Chat, "slack:"), p.Thread)
}

func slackChat(channel string) string { return "slack:" + channel }

// Serve implements Wire.
func (s *Slack) Serve(host string) (env []string, err error) {
	base, err := s.Start(listenOn(host, slackPort))
	return []string{"SLACK_BOT_TOKEN=" + s.BotToken(), "SLACK_APP_TOKEN=" + s.AppToken(), "SLACK_API_URL=" + base + "/api/"}, err
}

// About implements World.
func (s *Slack) About() About {
	return About{
		Daemon: "slakd", Platform: "slack", DMs: "D*",
		Cut: func(content string) []string {
			return render.Slack(content, 4000) // characters, as Slack advises
		},
		Token: "SLACK_BOT_TOKEN", Surfaces: Surfaces{DM: "slack-dm", Group: "slack-channel-thread", Thread: "slack-channel-thread"},
		Finds: true, Deletions: true,
	}
}

// Places implements People.
func (s *Slack) Places() []Place { return s.all }

// Do implements People. To answer a message is to write in the thread that it begins.
func (s *Slack) Do(a Act) (id string, err error) {
	who, in, draft := s.who[a.Chat], s.at(a.Place), slack.Draft{Text: a.Text, ThreadTS: a.Thread}
	if a.Bot {
		who = s.otherBot(a.Place)
	}
	switch a.Verb {
	case msg.VerbDelete:
		in.Delete(who, a.Target)
		return "", nil
	case msg.VerbEdit:
		_, err = in.Revise(who, a.Target, a.Text)
		return "", err
	case msg.VerbReaction:
		_ = in.SetReaction(who, a.Target, "thumbsup", true) // once only
		return "", nil
	case msg.VerbReply:
		draft.ThreadTS = cmp.Or(a.Thread, a.Target)
	case msg.VerbMention:
		draft.Text = s.Me().Mention() + " " + a.Text
	}
	if a.File != nil {
		draft.Attachment = &slack.Attachment{Name: a.File.Name, Data: a.File.Data}
	}
	m, err := in.Post(who, draft)
	return m.TS, err
}

func (s *Slack) otherBot(p Place) slack.User {
	bot, there := s.bots[p.Chat]
	if !there {
		bot = s.OtherBot("Other", "other")
		s.at(p).Invite(s.who[p.Chat], bot)
		s.bots[p.Chat] = bot
	}
	return bot
}

// Quiet implements People.
func (s *Slack) Quiet() bool { return s.Pending() == 0 }

// Arrived implements Wire.
func (s *Slack) Arrived() (all []Arrival) {
	for _, c := range s.Sent() {
		if c.Method != "chat.postMessage" && c.Method != "files.completeUploadExternal" {
			continue
		}
		a := Arrival{ID: c.TS, Chat: slackChat(c.ChannelID), Thread: c.ThreadTS, Text: c.Text, At: c.At}
		for _, f := range c.Files {
			a.Files = append(a.Files, File{f.Name, f.Data})
		}
		all = append(all, a)
	}
	return all
}

// Typed implements Wire.
func (s *Slack) Typed(p Place) bool {
	stands := s.at(p).Messages()
	return slices.ContainsFunc(s.Sent(), func(c slack.Call) bool {
		return c.Method == "reactions.add" && slices.ContainsFunc(stands, func(m slack.Message) bool { return m.TS == c.TS })
	})
}

// Hasty implements Wire.
func (s *Slack) Hasty() (n int) {
	for _, c := range s.Calls() {
		if c.Status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// Upset implements Trouble.
func (s *Slack) Upset(random *rand.Rand) string {
	n := 1 + random.IntN(3)
	const post = "chat.postMessage"
	faults := []slack.Fault{
		{Method: post, Status: 502, After: true},
		{Method: post, Status: 500},
		{Method: post, Error: "internal_error", After: true},
		{Method: post, RetryAfter: n},
		{Method: post, Drop: true},
		{Method: post, Drop: true, After: true},
		{Method: post, Body: "<html>gateway</html>", After: true},
		{Method: "conversations.history", Status: 503},
		{Method: "apps.connections.open", Status: 502},
		{Method: "socket", Drop: true},
		{Method: "*", Delay: time.Second},
	}
	others := []struct {
		name string
		do   func()
	}{
		{"events come twice", func() { s.Twice(5 * n) }},
		{"events come in disorder", func() { s.Reversed(n) }},
		{"events come again", func() { s.Redeliver(5 * n) }},
		{"mentions come first", func() { s.MentionsFirst(random.IntN(2) == 0) }},
		{"an event that nobody can read", func() { s.Inject(`{"type": "message", "user": 7}`) }},
		{"a frame that nobody can read", func() { s.InjectFrame(`{"type":`) }},
		{"connections break", func() { s.DropSockets() }},
		{"connections are to be made anew", func() { s.Disconnect("refresh_requested") }},
	}
	i := random.IntN(len(faults) + len(others))
	if i < len(faults) {
		f := faults[i]
		f.Times = n
		s.Fail(f)
		return fmt.Sprintf("%s ×%d: %s", f.Method, n, faultName(f.Drop, f.Body != "" || f.Error != "", f.After, f.RetryAfter > 0, f.Status))
	}
	other := others[i-len(faults)]
	other.do()
	return other.name
}

// Away implements Trouble.
func (s *Slack) Away(gone bool) {
	if gone {
		s.Unreachable()
	} else {
		s.Reachable()
	}
}

// Break implements Trouble.
func (s *Slack) Break() { s.DropSockets() }

// Disorder implements Trouble.
func (s *Slack) Disorder(n int) {
	s.Twice(n)
	s.Reversed(n)
	s.Redeliver(n)
}

// Spoil implements Trouble.
func (s *Slack) Spoil(f Fault) {
	s.Fail(slack.Fault{
		Method: "chat.postMessage", Status: f.Status, RetryAfter: int(f.RetryAfter / time.Second), Drop: f.Drop, After: f.After,
	})
}

// Expire implements Trouble.
func (s *Slack) Expire(expired bool) {
	s.Revoke(s.BotToken(), map[bool]string{true: "token_expired"}[expired])
}

// Deaths implements Trouble.
func (s *Slack) Deaths() []Death {
	archived, kicked, deleted := s.NewGroup("archived"), s.NewGroup("kicked"), s.NewGroup("deleted")
	return []Death{
		{"a channel is archived", archived, func() { s.at(archived).Archive(s.who[archived.Chat]) }},
		{"the bot is kicked", kicked, func() { s.at(kicked).KickBot(s.who[kicked.Chat]) }},
		{"a channel is deleted", deleted, func() { s.at(deleted).DeleteChannel() }},
	}
}
