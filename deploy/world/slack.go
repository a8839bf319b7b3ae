package world

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"arizuko/pkg/fakeplatform/slack"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
)

// slackPort is where it is served.
const slackPort = "9092"

// Slack is a world whose people write in DMs, in channels and in a thread.
type Slack struct {
	*slack.Server
	all []Place
	who map[string]slack.User // chat → who writes there
}

// NewSlack makes one of a size. Some of the places are fussy, and one childless.
func NewSlack(size Size, o slack.Options) *Slack {
	s := &Slack{Server: slack.New(o), who: map[string]slack.User{}}
	for i := range size.DMs {
		u := s.User(fmt.Sprintf("Person %d", i), fmt.Sprintf("person%d", i))
		s.add(s.DM(u), u, Place{Childless: i == 2, Fussy: i >= size.DMs-2})
	}
	u := s.User("Bob", "bob")
	for i := range size.Groups {
		s.add(s.Channel(fmt.Sprintf("channel-%d", i), u), u, Place{Calls: true, Fussy: i == size.Groups-1})
	}
	talk := s.Channel("talk", u)
	s.add(talk.Thread(talk.Say(u, "what about this?").TS), u, Place{Calls: true})
	return s
}

func (s *Slack) add(at slack.Place, who slack.User, p Place) {
	p.Chat, p.Thread = slackChat(at.ChannelID), at.ThreadTS
	s.all, s.who[p.Chat] = append(s.all, p), who
}

func slackChat(channel string) string { return "slack:" + channel }

// Serve implements Wire.
func (s *Slack) Serve(host string) (env []string, err error) {
	base, err := s.Start(listenOn(host, slackPort))
	return []string{"SLACK_BOT_TOKEN=" + s.BotToken(), "SLACK_APP_TOKEN=" + s.AppToken(), "SLACK_API_URL=" + base + "/api/"}, err
}

// About implements World.
func (s *Slack) About() About {
	return About{Daemon: "slakd", Platform: "slack", DMs: "D*", Cut: func(content string) []string {
		return render.Slack(content, 4000) // characters, as Slack advises
	}}
}

// Places implements People.
func (s *Slack) Places() []Place { return s.all }

// Do implements People.
func (s *Slack) Do(a Act) (id string, err error) {
	who, in := s.who[a.Chat], s.Place(strings.TrimPrefix(a.Chat, "slack:"), a.Thread)
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
	case msg.VerbMention:
		a.Text = s.Me().Mention() + " " + a.Text
	}
	m, err := in.Post(who, slack.Draft{Text: a.Text, ThreadTS: a.Thread})
	return m.TS, err
}

// Quiet implements People.
func (s *Slack) Quiet() bool { return s.Pending() == 0 }

// Arrived implements Wire.
func (s *Slack) Arrived() (all []Arrival) {
	for _, c := range s.Sent() {
		if c.Method == "chat.postMessage" {
			all = append(all, Arrival{ID: c.TS, Chat: slackChat(c.ChannelID), Thread: c.ThreadTS, Text: c.Text, At: c.At})
		}
	}
	return all
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

// Upset implements Wire.
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

// Away implements Wire.
func (s *Slack) Away(gone bool) {
	if gone {
		s.Unreachable()
	} else {
		s.Reachable()
	}
}
