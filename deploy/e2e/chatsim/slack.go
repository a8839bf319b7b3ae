package chatsim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/testkit/fakes/slack"
)

// slackPort is the port of the fake Slack.
const slackPort = "9092"

// Slack is a Platform whose users write in DMs, channels and a thread.
type Slack struct {
	*slack.Server
	all   []Conversation
	users map[string]slack.User // by JID
	bots  map[string]slack.User // the other bot there, by JID
}

// NewSlack creates a platform of a size. In some conversations users mutate messages; one has no
// child group.
func NewSlack(size Size, o slack.Options) *Slack {
	s := &Slack{Server: slack.New(o), users: map[string]slack.User{}, bots: map[string]slack.User{}}
	for i := range size.DMs {
		c := s.NewDM(fmt.Sprintf("Person %d", i))
		c.NoChildGroup, c.Mutates = i == 2, i >= size.DMs-2
		s.all = append(s.all, c)
	}
	for i := range size.Groups {
		c := s.NewGroup(fmt.Sprintf("channel-%d", i))
		c.Mutates = i == size.Groups-1
		s.all = append(s.all, c)
	}
	s.all = append(s.all, s.NewThread("talk"))
	return s
}

// NewDM implements ConversationMaker.
func (s *Slack) NewDM(name string) Conversation {
	u := s.User(name, strings.ToLower(name))
	return s.add(s.DM(u), u, false)
}

// NewGroup implements ConversationMaker.
func (s *Slack) NewGroup(title string) Conversation {
	u := s.User("Bob", "bob")
	return s.add(s.Channel(title, u), u, true)
}

// NewThread implements ConversationMaker.
func (s *Slack) NewThread(title string) Conversation {
	u := s.User("Bob", "bob")
	talk := s.Channel(title, u)
	return s.add(talk.Thread(talk.Say(u, "what about this?").TS), u, true)
}

func (s *Slack) add(at slack.Place, user slack.User, needsMention bool) Conversation {
	c := Conversation{Chat: slackChat(at.ChannelID), Thread: at.ThreadTS, NeedsMention: needsMention}
	s.users[c.Chat] = user
	return c
}

// at returns the fake's own place of a conversation.
func (s *Slack) at(c Conversation) slack.Place {
	return s.Place(strings.TrimPrefix(c.Chat, "slack:"), c.Thread)
}

func slackChat(channel string) string { return "slack:" + channel }

// Serve implements Transport.
func (s *Slack) Serve(host string) (env []string, err error) {
	base, err := s.Start(listenOn(host, slackPort))
	return []string{"SLACK_BOT_TOKEN=" + s.BotToken(), "SLACK_APP_TOKEN=" + s.AppToken(),
		"SLACK_API_URL=" + base + "/api/"}, err
}

// Info implements Platform.
func (s *Slack) Info() Info {
	return Info{
		Daemon: "slakd", Platform: "slack", DMPattern: "D*",
		Split: func(content string) []string {
			return render.Slack(content, 4000-markRoom) // characters, as Slack advises
		},
		TokenEnv: "SLACK_BOT_TOKEN", Surfaces: Surfaces{DM: "slack-dm", Group: "slack-channel-thread",
			Thread: "slack-channel-thread"},
		FindsMessages: true, ReportsDeletions: true,
	}
}

// Conversations implements Users.
func (s *Slack) Conversations() []Conversation { return s.all }

// Do implements Users. A reply is a message in the thread that its target starts.
func (s *Slack) Do(a Action) (id string, err error) {
	user, in, draft := s.users[a.Chat], s.at(a.Conversation), slack.Draft{Text: a.Text, ThreadTS: a.Thread}
	if a.Bot {
		user = s.otherBot(a.Conversation)
	}
	switch a.Verb {
	case msg.VerbDelete:
		in.Delete(user, a.Target)
		return "", nil
	case msg.VerbEdit:
		_, err = in.TryEdit(user, a.Target, a.Text)
		return "", err
	case msg.VerbReaction:
		_ = in.SetReaction(user, a.Target, "thumbsup", true) // fails if it is set already
		return "", nil
	case msg.VerbReply:
		draft.ThreadTS = cmp.Or(a.Thread, a.Target)
	case msg.VerbMention:
		draft.Text = s.Me().Mention() + " " + a.Text
	}
	if a.File != nil {
		draft.Attachment = &slack.Attachment{Name: a.File.Name, Data: a.File.Data, Voice: a.File.Voice}
	}
	m, err := in.Post(user, draft)
	return m.TS, err
}

func (s *Slack) otherBot(c Conversation) slack.User {
	bot, ok := s.bots[c.Chat]
	if !ok {
		bot = s.OtherBot("Other", "other")
		s.at(c).Invite(s.users[c.Chat], bot)
		s.bots[c.Chat] = bot
	}
	return bot
}

// Vote implements Users: Slack has no polls, users react with numbers.
func (s *Slack) Vote(c Conversation, poll string, option int) error {
	return s.at(c).SetReaction(s.users[c.Chat], poll, []string{"one", "two", "three"}[option-1], true)
}

// message is a message of a conversation, with an error if there is none.
func (s *Slack) message(c Conversation, ts string) (slack.Message, error) {
	for _, m := range s.at(c).Messages() {
		if m.TS == ts {
			return m, nil
		}
	}
	return slack.Message{}, fmt.Errorf("no message %s in %s", ts, c.Chat)
}

// Buttons implements Presser.
func (s *Slack) Buttons(c Conversation, message string) (labels []string, text string) {
	m, _ := s.message(c, message) // none has no buttons
	labels, _, _ = sorted(m.Buttons(), "")
	return labels, m.Text
}

// Press implements Presser. The id of a press is the number of messages that single users saw before it.
func (s *Slack) Press(c Conversation, message, label string, other bool) (press string, err error) {
	by := s.users[c.Chat]
	if other {
		by = s.User("Eve", "eve")
		s.at(c).Invite(s.users[c.Chat], by)
	}
	m, err := s.message(c, message)
	if err != nil {
		return "", err
	}
	_, value, err := sorted(m.Buttons(), label)
	if err != nil {
		return "", err
	}
	before := len(s.at(c).Ephemeral())
	_, err = s.at(c).TryPressButton(by, message, value, value)
	return strconv.Itoa(before), err
}

// Stoppable implements Presser.
func (s *Slack) Stoppable(c Conversation) (messages []string) {
	for _, m := range s.at(c).Messages() {
		if hasStop(m.Buttons()) {
			messages = append(messages, m.TS)
		}
	}
	return messages
}

// BotReactions implements Reactor.
func (s *Slack) BotReactions(c Conversation, message string) (names []string) {
	m, _ := s.message(c, message) // none has no reactions
	for _, r := range m.Reactions {
		if slices.Contains(r.Users, s.Me().ID) {
			names = append(names, r.Name)
		}
	}
	return names
}

// ForbidReactions implements Reactor, in all chats.
func (s *Slack) ForbidReactions(Conversation) {
	s.InjectFault(slack.Fault{Method: "reactions.add", Error: "not_reactable", Times: -1})
}

// PressAnswer implements Presser. Slack has an acknowledgement in any case, and a message for one user where there is
// something to say.
func (s *Slack) PressAnswer(c Conversation, press string) (text string, ok bool) {
	before, err := strconv.Atoi(press)
	if !s.AllAcknowledged() || err != nil {
		return "", false
	}
	if shown := s.at(c).Ephemeral(); len(shown) > before {
		text = shown[len(shown)-1].Text
	}
	return text, true
}

// AllAcknowledged implements Users.
func (s *Slack) AllAcknowledged() bool { return s.Pending() == 0 }

// Arrivals implements Transport.
func (s *Slack) Arrivals() []Arrival { return s.shown().arrivals() }

// LeftPreviews implements Transport.
func (s *Slack) LeftPreviews() []Arrival { return s.shown().leftPreviews() }

func (s *Slack) shown() *shown {
	all := &shown{}
	for _, call := range s.Sent() {
		switch call.Method {
		case "chat.startStream":
			all.previewMade(Arrival{ID: call.TS, Chat: slackChat(call.ChannelID), Thread: call.ThreadTS, At: call.At})
		case "chat.appendStream", "chat.update":
			all.changed(slackChat(call.ChannelID), call.TS, call.Text, call.At)
		case "chat.delete":
			all.deleted(slackChat(call.ChannelID), call.TS)
		}
		if call.Method != "chat.postMessage" && call.Method != "files.completeUploadExternal" {
			continue
		}
		a := Arrival{ID: call.TS, Chat: slackChat(call.ChannelID), Thread: call.ThreadTS, Text: call.Text, At: call.At}
		for _, f := range call.Files {
			a.Files = append(a.Files, File{Name: f.Name, Data: f.Data})
		}
		all.made(a)
	}
	return all
}

// ShowsWorking implements Transport.
func (s *Slack) ShowsWorking(c Conversation) bool {
	present := s.at(c).Messages()
	return slices.ContainsFunc(s.Sent(), func(call slack.Call) bool {
		return call.Method == "reactions.add" && slices.ContainsFunc(present,
			func(m slack.Message) bool { return m.TS == call.TS })
	})
}

// RateLimited implements Transport.
func (s *Slack) RateLimited() (n int) {
	for _, c := range s.Calls() {
		if c.Status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// InjectRandomFault implements FaultInjector.
func (s *Slack) InjectRandomFault(random *rand.Rand) string {
	n := 1 + random.IntN(3)
	const post, update = "chat.postMessage", "chat.update"
	faults := []slack.Fault{
		{Method: post, Status: 502, After: true},
		{Method: post, Status: 500},
		{Method: post, Error: "internal_error", After: true},
		{Method: post, RetryAfter: n},
		{Method: post, Drop: true},
		{Method: post, Drop: true, After: true},
		{Method: post, Body: "<html>gateway</html>", After: true},
		{Method: update, Status: 502, After: true},
		{Method: update, Status: 500},
		{Method: update, Error: "internal_error", After: true},
		{Method: update, RetryAfter: n},
		{Method: update, Drop: true},
		{Method: update, Drop: true, After: true},
		{Method: update, Delay: slowEdit},
		{Method: "chat.startStream", Drop: true, After: true},
		{Method: "chat.appendStream", Drop: true, After: true},
		{Method: "chat.appendStream", RetryAfter: n},
		{Method: "chat.stopStream", Status: 503, After: true},
		{Method: "chat.delete", Status: 503},
		{Method: "chat.delete", Drop: true, After: true},
		{Method: "chat.delete", RetryAfter: n},
		{Method: "conversations.history", Status: 503},
		{Method: "apps.connections.open", Status: 502},
		{Method: "socket", Drop: true},
		{Method: "download", Drop: true},
		{Method: "*", Delay: time.Second},
	}
	others := []struct {
		name string
		do   func()
	}{
		{"duplicate events", func() { s.DuplicateNext(5 * n) }},
		{"reordered events", func() { s.ReverseNext(1 + n) }},
		{"redelivered events", func() { s.Redeliver(5 * n) }},
		{"mentions before messages", func() { s.SetMentionFirst(random.IntN(2) == 0) }},
		{"malformed event", func() { s.Inject(`{"type": "message", "user": 7}`) }},
		{"malformed frame", func() { s.InjectFrame(`{"type":`) }},
		{"connections dropped", func() { s.DropSockets() }},
		{"reconnect requested", func() { s.Disconnect("refresh_requested") }},
	}
	i := random.IntN(len(faults) + len(others))
	if i < len(faults) {
		f := faults[i]
		f.Times = n
		s.InjectFault(f)
		return fmt.Sprintf("%s ×%d: %s", f.Method, n, faultName(f.Drop, f.Body != "" || f.Error != "", f.After,
			f.RetryAfter > 0, f.Status))
	}
	other := others[i-len(faults)]
	other.do()
	return other.name
}

// SetListening implements Network.
func (s *Slack) SetListening(ok bool) error { return setListening(s, ok) }

// DropConnections implements Network.
func (s *Slack) DropConnections() { s.DropSockets() }

// DuplicateAndReorder implements FaultInjector.
func (s *Slack) DuplicateAndReorder(n int) {
	s.DuplicateNext(n)
	s.ReverseNext(n)
	s.Redeliver(n)
}

// FailNextSend implements FaultInjector.
func (s *Slack) FailNextSend(f Fault) {
	s.InjectFault(slack.Fault{
		Method: "chat.postMessage", Status: f.Status, RetryAfter: int(f.RetryAfter / time.Second), Drop: f.Drop,
		After: f.After,
	})
}

// RefuseButtons implements Presser.
func (s *Slack) RefuseButtons() {
	s.InjectFault(slack.Fault{Method: "chat.postMessage", Error: "invalid_blocks"})
}

// RefuseEdits implements FaultInjector.
func (s *Slack) RefuseEdits() {
	s.InjectFault(slack.Fault{Method: "chat.update", RetryAfter: 1, Times: -1})
}

// SetTokenValid implements FaultInjector.
func (s *Slack) SetTokenValid(ok bool) {
	s.Revoke(s.BotToken(), map[bool]string{false: "token_expired"}[ok])
}

// Removals implements FaultInjector.
func (s *Slack) Removals() []Removal {
	archived, kicked, deleted := s.NewGroup("archived"), s.NewGroup("kicked"), s.NewGroup("deleted")
	return []Removal{
		{Name: "a channel is archived", Conversation: archived,
			Apply: func() { s.at(archived).Archive(s.users[archived.Chat]) }},
		{Name: "the bot is kicked", Conversation: kicked, Apply: func() { s.at(kicked).KickBot(s.users[kicked.Chat]) }},
		{Name: "a channel is deleted", Conversation: deleted, Apply: func() { s.at(deleted).DeleteChannel() }},
	}
}
