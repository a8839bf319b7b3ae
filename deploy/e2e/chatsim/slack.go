package chatsim

import (
	"cmp"
	"math/rand/v2"
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
	sim[slack.User]
}

// NewSlack creates a platform of a size.
func NewSlack(size Size, o slack.Options) *Slack {
	s := &Slack{Server: slack.New(o)}
	s.sim = newSim[slack.User](s)
	s.populate(size)
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

// Appoint implements ConversationMaker.
func (s *Slack) Appoint(c Conversation) { s.Server.Appoint(s.users[c.Chat], true) }

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
	base, err := s.serve(host, slackPort)
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

func (s *Slack) mention() string { return s.Me().Mention() }

// post implements seam. A reply is a message in the thread that its target starts.
func (s *Slack) post(user slack.User, a Action) (id string, err error) {
	draft := slack.Draft{Text: a.Text, ThreadTS: a.Thread}
	if a.Verb == msg.VerbReply {
		draft.ThreadTS = cmp.Or(a.Thread, a.Target)
	}
	if a.File != nil {
		draft.Attachment = &slack.Attachment{Name: a.File.Name, Data: a.File.Data, Voice: a.File.Voice}
	}
	m, err := s.at(a.Conversation).Post(user, draft)
	return m.TS, err
}

func (s *Slack) change(user slack.User, a Action) (err error) {
	in := s.at(a.Conversation)
	switch a.Verb {
	case msg.VerbDelete:
		in.Delete(user, a.Target)
	case msg.VerbEdit:
		_, err = in.TryEdit(user, a.Target, a.Text)
	case msg.VerbReaction:
		_ = in.SetReaction(user, a.Target, "thumbsup", true) // fails if it is set already
	}
	return err
}

func (s *Slack) bot(c Conversation) slack.User { return s.invite(c, s.OtherBot("Other", "other")) }

func (s *Slack) stranger(c Conversation) slack.User { return s.invite(c, s.User("Eve", "eve")) }

func (s *Slack) invite(c Conversation, user slack.User) slack.User {
	s.at(c).Invite(s.users[c.Chat], user)
	return user
}

// Vote implements Users: Slack has no polls, users react with numbers.
func (s *Slack) Vote(c Conversation, poll string, option int) error {
	return s.at(c).SetReaction(s.users[c.Chat], poll, []string{"one", "two", "three"}[option-1], true)
}

func (s *Slack) messages(c Conversation) (all []message) {
	for _, m := range s.at(c).Messages() {
		all = append(all, message{m.TS, m.Text, m.Buttons()})
	}
	return all
}

// press implements seam. The id of a press is the number of messages that single users saw before it.
func (s *Slack) press(by slack.User, c Conversation, message, value string) (press string, err error) {
	before := len(s.at(c).Ephemeral())
	_, err = s.at(c).TryPressButton(by, message, value, value)
	return strconv.Itoa(before), err
}

// BotReactions implements Reactor.
func (s *Slack) BotReactions(c Conversation, message string) (names []string) {
	for name, users := range s.at(c).Reactions(message) {
		if slices.Contains(users, s.Me().ID) {
			names = append(names, name)
		}
	}
	return names
}

// ForbidReactions implements Reactor, in all chats.
func (s *Slack) ForbidReactions(Conversation) {
	s.inject(fault{call: "reactions.add", err: "not_reactable", times: -1})
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
func (s *Slack) RateLimited() int {
	return limited(s.Calls(), func(c slack.Call) int { return c.Status })
}

func (s *Slack) calls() calls { return calls{"chat.postMessage", "chat.update", "chat.delete", "*"} }

func (s *Slack) inject(f fault) {
	s.InjectFault(slack.Fault{Method: f.call, Times: f.times, After: f.after, Delay: f.delay, Drop: f.drop,
		Body: f.body, Status: f.status, Error: f.err, RetryAfter: int(f.retryAfter / time.Second)})
}

func (s *Slack) faults(retryAfter time.Duration) []fault {
	return []fault{
		{call: "chat.postMessage", err: "internal_error", after: true},
		{call: "chat.update", status: 500},
		{call: "chat.update", err: "internal_error", after: true},
		{call: "chat.startStream", drop: true, after: true},
		{call: "chat.appendStream", drop: true, after: true},
		{call: "chat.appendStream", retryAfter: retryAfter},
		{call: "chat.stopStream", status: 503, after: true},
		{call: "chat.delete", status: 503},
		{call: "chat.delete", retryAfter: retryAfter},
		{call: "conversations.history", status: 503},
		{call: "apps.connections.open", status: 502},
		{call: "socket", drop: true},
		{call: "download", drop: true},
	}
}

func (s *Slack) events(n int, random *rand.Rand) events {
	return events{
		duplicate: func() { s.DuplicateNext(n) },
		reorder:   func() { s.ReverseNext(1 + n) },
		redeliver: func() { s.Redeliver(n) },
		malformed: func() { s.Inject(`{"type": "message", "user": 7}`) },
		others: []disturbance{
			{"mentions before messages", func() { s.SetMentionFirst(random.IntN(2) == 0) }},
			{"malformed frame", func() { s.InjectFrame(`{"type":`) }},
			{"connections dropped", func() { s.DropSockets() }},
			{"reconnect requested", func() { s.Disconnect("refresh_requested") }},
		},
	}
}

// RefuseButtons implements Presser.
func (s *Slack) RefuseButtons() {
	s.inject(fault{call: "chat.postMessage", err: "invalid_blocks"})
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
