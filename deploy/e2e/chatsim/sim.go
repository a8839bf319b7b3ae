package chatsim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/msg"
)

// sim is the part of a Platform that is the same on all of them. U is the type of the fake's users.
type sim[U any] struct {
	seam  seam[U]
	all   []Conversation
	users map[string]U // who writes in a chat, by JID
	bots  map[string]U // the other bot of a chat, by JID
}

// seam is the part that differs: calls of one fake.
type seam[U any] interface {
	ConversationMaker
	server
	chats[U]
	faulty
	shown() *shown
}

type server interface {
	Base() string
	Start(addr string) (base string, err error)
	Close() error
}

// chats are the conversations, in which users and bots act.
type chats[U any] interface {
	// bot and stranger create another bot and another user, who join a conversation.
	bot(c Conversation) U
	stranger(c Conversation) U
	mention() string // of the bot
	post(user U, a Action) (id string, err error)
	change(user U, a Action) error // edits, deletes or reacts to a message
	messages(c Conversation) []message
	press(by U, c Conversation, message, data string) (press string, err error)
}

// faulty disturbs the calls of the adapter and its events.
type faulty interface {
	calls() calls
	inject(f fault)
	faults(retryAfter time.Duration) []fault // in addition to those that every platform has
	events(n int, random *rand.Rand) events
}

// message is a message with its buttons: their data by label.
type message struct {
	id, text string
	buttons  map[string]string
}

// calls are the names of the calls that every platform has.
type calls struct{ send, edit, remove, any string }

// events are ways to disturb the next n events. The named ones exist on every platform.
type events struct {
	duplicate, reorder, redeliver, malformed func()
	others                                   []disturbance
}

type disturbance struct {
	name string
	do   func()
}

// fault is how a call fails.
type fault struct {
	call       string
	times      int // how many calls; negative is until ClearFaults
	after      bool
	delay      time.Duration
	drop       bool
	status     int
	retryAfter time.Duration
	body, err  string // the answer, and the platform's own error in it
}

// String describes a fault without its delay.
func (f fault) String() string {
	name := "slow"
	switch {
	case f.drop:
		name = "connection dropped"
	case f.body != "" || f.err != "":
		name = "malformed response"
	case f.retryAfter > 0:
		name = "429"
	case f.status > 0:
		name = strconv.Itoa(f.status)
	}
	if f.after {
		name += " after processing"
	}
	return fmt.Sprintf("%s ×%d: %s", cmp.Or(f.call, "any call"), f.times, name)
}

func newSim[U any](s seam[U]) sim[U] {
	return sim[U]{seam: s, users: map[string]U{}, bots: map[string]U{}}
}

// populate creates DMs and groups. In some of them users mutate messages; one has no child group.
func (s *sim[U]) populate(size Size) {
	for i := range size.DMs {
		c := s.seam.NewDM(fmt.Sprintf("Person %d", i))
		c.NoChildGroup, c.Mutates = i == 2, i >= size.DMs-2
		s.all = append(s.all, c)
	}
	for i := range size.Groups {
		c := s.seam.NewGroup(fmt.Sprintf("group-%d", i))
		c.Mutates = i == size.Groups-1
		s.all = append(s.all, c)
	}
}

// Conversations implements Users.
func (s *sim[U]) Conversations() []Conversation { return s.all }

// Do implements Users.
func (s *sim[U]) Do(a Action) (id string, err error) {
	user := s.users[a.Chat]
	if a.Bot {
		user = s.otherBot(a.Conversation)
	}
	switch a.Verb {
	case msg.VerbDelete, msg.VerbEdit, msg.VerbReaction:
		return "", s.seam.change(user, a)
	case msg.VerbMention:
		a.Text = s.seam.mention() + " " + a.Text
	}
	return s.seam.post(user, a)
}

func (s *sim[U]) otherBot(c Conversation) U {
	bot, ok := s.bots[c.Chat]
	if !ok {
		bot = s.seam.bot(c)
		s.bots[c.Chat] = bot
	}
	return bot
}

// message is a message of a conversation by its id, with an error if there is none.
func (s *sim[U]) message(c Conversation, id string) (message, error) {
	for _, m := range s.seam.messages(c) {
		if m.id == id {
			return m, nil
		}
	}
	return message{}, fmt.Errorf("no message %s in %s", id, c.Chat)
}

// Buttons implements Presser.
func (s *sim[U]) Buttons(c Conversation, message string) (labels []string, text string) {
	m, _ := s.message(c, message) // a missing message has no buttons
	return slices.Sorted(maps.Keys(m.buttons)), m.text
}

// Press implements Presser.
func (s *sim[U]) Press(c Conversation, message, label string, other bool) (press string, err error) {
	by := s.users[c.Chat]
	if other {
		by = s.seam.stranger(c)
	}
	m, err := s.message(c, message)
	if err != nil {
		return "", err
	}
	data, found := m.buttons[label]
	if !found {
		return "", fmt.Errorf("no button %q in %q", label, m.buttons)
	}
	return s.seam.press(by, c, message, data)
}

// Stoppable implements Presser.
func (s *sim[U]) Stoppable(c Conversation) (messages []string) {
	for _, m := range s.seam.messages(c) {
		if press, ours := msg.ParseButtonData(m.buttons[msg.StopLabel]); ours && press.Stop > 0 {
			messages = append(messages, m.id)
		}
	}
	return messages
}

// Arrivals implements Transport.
func (s *sim[U]) Arrivals() []Arrival { return s.seam.shown().arrivals() }

// LeftPreviews implements Transport.
func (s *sim[U]) LeftPreviews() []Arrival { return s.seam.shown().leftPreviews() }

// serve listens on a port of the host.
func (s *sim[U]) serve(host, port string) (base string, err error) {
	return s.seam.Start(net.JoinHostPort(host, port))
}

// SetListening implements Network.
func (s *sim[U]) SetListening(ok bool) error {
	if !ok {
		return s.seam.Close()
	}
	_, err := s.seam.Start(strings.TrimPrefix(s.seam.Base(), "http://"))
	return err
}

// InjectRandomFault implements FaultInjector.
func (s *sim[U]) InjectRandomFault(random *rand.Rand) string {
	n := 1 + random.IntN(3)
	wait := time.Duration(n) * time.Second
	faults := slices.Concat(commonFaults(s.seam.calls(), wait), s.seam.faults(wait))
	e, several := s.seam.events(n, random), s.seam.events(5*n, random)
	others := append([]disturbance{
		{"duplicate events", several.duplicate},
		{"reordered events", e.reorder},
		{"redelivered events", several.redeliver},
		{"malformed event", e.malformed},
	}, e.others...)
	i := random.IntN(len(faults) + len(others))
	if i >= len(faults) {
		others[i-len(faults)].do()
		return others[i-len(faults)].name
	}
	f := faults[i]
	f.times = n
	s.seam.inject(f)
	return f.String()
}

// slowEdit is longer than adapters wait for the change of a preview.
const slowEdit = 7 * time.Second

// commonFaults are the faults that every platform has.
func commonFaults(c calls, retryAfter time.Duration) []fault {
	return []fault{
		{call: c.send, status: 502, after: true},
		{call: c.send, status: 500},
		{call: c.send, retryAfter: retryAfter},
		{call: c.send, drop: true},
		{call: c.send, drop: true, after: true},
		{call: c.send, body: "<html>gateway</html>", after: true},
		{call: c.edit, status: 502, after: true},
		{call: c.edit, retryAfter: retryAfter},
		{call: c.edit, drop: true},
		{call: c.edit, drop: true, after: true},
		{call: c.edit, delay: slowEdit},
		{call: c.remove, drop: true, after: true},
		{call: c.any, delay: time.Second},
	}
}

// limited counts the calls refused with 429.
func limited[C any](calls []C, status func(C) int) (n int) {
	for _, c := range calls {
		if status(c) == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}
