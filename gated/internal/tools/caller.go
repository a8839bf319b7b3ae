package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"arizuko/gated/internal/authority"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Caller is the run that calls, with the turn it works on. Identity, authority, depth
// and defaults of a call come from here.
type Caller struct {
	Services *Services
	Tool     string // the tool's name
	Request  string // a random id of the call, which all its log lines have
	RunID    int64
	// Turn is the turn at work as it was stored when the call began. Fields that change while it runs, such as its
	// state, are read again where they matter.
	Turn *msg.Turn
	// Config is the configuration of the run's group.
	Config groupconfig.Config
	// Redact hides the run's secrets in a text.
	Redact func(string) string

	access   *Access
	origin   authority.Origin // for whom the turn works
	place    *place           // nil in tests
	copies   int              // how often the call stores its arguments, 0 for once
	replaced any              // what it changes or ends, as it was, or names it; nil for none
}

// requestChars is enough of a random text to find the lines of a call in a log: 40 bits.
const requestChars = 8

// Refusal is an error that the model can act on: its text names an alternative.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Errors about the turn of a call.
var (
	errNoTurn = &Refusal{"no message is being answered now: tools work only while a turn is open, so wait for the " +
		"next message"}
	errEnded = &Refusal{"the turn of this call was cancelled or has ended: stop working on it"}
)

// caller returns who makes a call that begins now.
func (s *Services) caller(ctx context.Context, a *Access, tool string) (*Caller, error) {
	id, config := a.atWork()
	if id == 0 {
		return nil, errNoTurn
	}
	t, err := s.Store.Turn(ctx, id)
	if err != nil {
		return nil, err
	}
	if !a.serves(t) {
		return nil, errEnded
	}
	origin, err := s.originOf(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Caller{
		Services: s, Tool: tool, Request: rand.Text()[:requestChars], RunID: a.run.ID, Turn: t,
		Config: config, Redact: a.redact, access: a, origin: origin,
	}, nil
}

// serves reports whether a turn, as it is stored, is open and the run's.
func (a *Access) serves(t *msg.Turn) bool {
	return t != nil && t.State == msg.TurnRunning && t.RunID == a.run.ID && msg.Within(t.Folder, a.run.Folder) &&
		a.ctx.Err() == nil
}

// checkOpen returns a refusal if the caller's turn is not open any more, or the run has ended.
func (c *Caller) checkOpen(ctx context.Context, r store.Reader) error {
	t, err := r.Turn(ctx, c.Turn.ID)
	if err == nil && !c.access.serves(t) {
		err = errEnded
	}
	return err
}

// write runs fn in a transaction, or returns a refusal if the caller's turn is not open any more.
func (c *Caller) write(ctx context.Context, fn func(tx *store.Tx) error) error {
	return c.Services.Store.Write(ctx, func(tx *store.Tx) error {
		if err := c.checkOpen(ctx, tx.Reader); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Reaches reports whether a folder is the caller's own or below it.
func (c *Caller) Reaches(folder string) bool { return msg.Within(folder, c.Turn.Folder) }

// CheckFolder returns a refusal unless folder is a valid name within the caller's reach.
func (c *Caller) CheckFolder(folder string) error {
	if err := msg.ValidFolder(folder); err != nil {
		return refuse("%v: give the full name of a group, such as %s", err, c.Turn.Folder)
	}
	if !c.Reaches(folder) {
		return refuse("group %s is out of reach: you reach %s and the groups below it", folder, c.Turn.Folder)
	}
	return nil
}

// isOwn reports whether a chat is the caller's to read. The chat of a turn that works for
// another group is that group's: the answer goes there, and nothing more.
func (c *Caller) isOwn(jid string) bool { return jid == c.Turn.ChatJID && !c.Turn.WorksForGroup() }

// CheckChat returns a refusal unless a chat is one between groups within the caller's reach, or is answered by such a
// group now, which is open to those for whom the turn works. That the caller's turn is of the chat is not enough: a
// group that a user has called by its name answers the user, and the chat stays that of another group.
func (c *Caller) CheckChat(ctx context.Context, r store.Reader, jid string) error {
	home, err := c.Services.Chats.Home(ctx, r, jid)
	if err != nil {
		return err
	}
	if !c.Reaches(home) {
		return refuse("chat %.100q is out of reach: you reach the chats that %s and the groups below it answer", jid,
			c.Turn.Folder)
	}
	return c.checkAccess(ctx, r, home)
}

// CheckMessage returns a message, or a refusal unless it is in the caller's chat, was
// routed to a group within its reach, or is an answer of one. In other chats it may only
// be one that the group's configuration lets the agent observe: direct messages are not,
// by default.
func (c *Caller) CheckMessage(ctx context.Context, r store.Reader, id int64) (*msg.Message, error) {
	m, err := r.Message(ctx, id)
	if err != nil {
		return nil, err
	}
	if m != nil {
		shown, err := c.observes(ctx, r, m.ChatJID)
		answer := m.ChatJID == c.Turn.ChatJID && m.Direction == msg.Out // also where the chat is another group's
		if err == nil && (shown || answer) && !c.isOwn(m.ChatJID) {
			shown, err = c.owns(ctx, r, m)
		}
		if err != nil || shown {
			return m, err
		}
	}
	// The same words for both: whether other groups have a message of that id is not said.
	return nil, refuse("no message %d is in reach: take an id from the prompt, or from search_messages", id)
}

// shows reports whether the caller may learn of something that a group has in a chat, such as a reminder.
func (c *Caller) shows(ctx context.Context, r store.Reader, folder, jid string) (bool, error) {
	reaches, err := c.reachesFor(ctx, r, folder)
	if err != nil || !reaches {
		return false, err
	}
	return c.observes(ctx, r, jid)
}

// observes reports whether the run may read the messages of a chat: always its own, others if the group's
// configuration lets it observe them.
func (c *Caller) observes(ctx context.Context, r store.Reader, jid string) (bool, error) {
	if c.isOwn(jid) {
		return true, nil
	}
	switch c.Config.Observe {
	case groupconfig.ObserveAll:
		return true, nil
	case groupconfig.ObserveNone:
		return false, nil
	}
	kind, err := rows.ChatKind(ctx, r, jid)
	return kind != msg.ChatDM, err
}

// owns reports whether a message was routed to a group within the caller's reach, or is
// an answer of one.
func (c *Caller) owns(ctx context.Context, r store.Reader, m *msg.Message) (bool, error) {
	if c.Reaches(m.RoutedTo) || m.TurnID == 0 {
		return c.reachesFor(ctx, r, m.RoutedTo)
	}
	t, err := r.Turn(ctx, m.TurnID)
	if err != nil || t == nil {
		return false, err
	}
	return c.reachesFor(ctx, r, t.Folder)
}

// explain returns the text of an error for the model: a refusal's own, else that the
// tool has failed.
func explain(err error) (text string, refused bool) {
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal.text, true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "the call took too long and was ended: try again later, once", false
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrLocked), errors.Is(err, store.ErrClosed),
		errors.Is(err, store.ErrReadOnly):
		return "the database is not available right now: try again later, once", false
	}
	return "the tool failed inside arizuko, whose log has the reason: go on without it", false
}

// placeOf returns the thread and the place of a topic of a turn's chat: "#name", a
// thread, or a fork such as "<thread>#fix". It returns a refusal for anything else.
func placeOf(ctx context.Context, r store.Reader, t *msg.Turn, topic string) (thread, place string, err error) {
	if topic == t.Topic || topic == t.Place {
		return t.ThreadID, t.Place, nil
	}
	if thread, place, found, err := placeOfFork(ctx, r, t, topic); err != nil || found {
		return thread, place, err
	}
	base, _, named := strings.Cut(topic, msg.TopicSigil)
	if named && !msg.ValidTopic(topic[len(base):]) {
		return "", "", refuse("topic %.80q is not valid: write %s", topic, msg.TopicRule)
	}
	if base != "" {
		known := base == t.ThreadID
		if !known {
			known, err = rows.HasThread(ctx, r, t.ChatJID, base)
		}
		if err == nil && !known {
			err = refuse("this chat has no thread %.80q: leave topic out, or name a topic such as #deploy", base)
		}
		return base, topic, err
	}
	if thread, err = rows.ThreadOfTopic(ctx, r, t.ChatJID, topic); err != nil {
		return "", "", err
	}
	return thread, msg.Place(thread, topic), nil
}

// placeOfFork returns the thread and the place of a fork of a turn's group, or of the
// parent of the one that the turn is in; found is false for every other topic. It returns a
// refusal for a fork that has ended.
func placeOfFork(ctx context.Context, r store.Reader, t *msg.Turn, topic string) (thread, place string, found bool,
	err error) {
	current, err := r.Fork(ctx, t.ChatJID, t.Topic)
	if err != nil {
		return "", "", false, err
	}
	if current != nil && current.Folder == t.Folder && topic == current.Parent() {
		return current.ParentThread(), msg.Place(current.ParentThread(), topic), true, nil
	}
	fork, err := r.Fork(ctx, t.ChatJID, topic)
	if err != nil || fork == nil || fork.Folder != t.Folder {
		return "", "", false, err
	}
	if fork.EndedAt != 0 {
		return "", "", false, refuse("the fork %s is over: leave topic out, or begin another with fork_topic", topic)
	}
	return fork.ThreadID, fork.Place(), true, nil
}

// turnIn is the caller's turn in its own chat. In another chat it stands for one outside of threads and topics.
func (c *Caller) turnIn(jid string) *msg.Turn {
	if jid == c.Turn.ChatJID {
		return c.Turn
	}
	return &msg.Turn{Folder: c.Turn.Folder, ChatJID: jid}
}

// checkTakes returns a refusal if a chat takes no message in a place: outside of the posts of a forum. instead is the
// advice for that.
func checkTakes(ctx context.Context, r store.Reader, jid, thread, instead string) error {
	if thread != "" {
		return nil
	}
	has, err := rows.HasTopLevel(ctx, r, jid)
	if err == nil && !has {
		err = refuse("chat %.100q is a forum, where all messages are in posts: %s", jid, instead)
	}
	return err
}

// given is an argument that may be left out: nil for "".
func given(argument string) *string {
	if argument == "" {
		return nil
	}
	return &argument
}
