package tools

import (
	"context"
	"net/http"
	"strings"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

type forkTopicIn struct {
	Topic        string `json:"topic,omitempty" jsonschema:"the fork's topic: the current one with # and a name behind it; left out: the current one with #fix"`
	OffMessageID int64  `json:"off_message_id,omitempty" jsonschema:"the message that is corrected, by its id: one of this chat and topic; left out: your answer that the user replied to, else your newest one"`
}

type forkTopicOut struct {
	Topic    string `json:"topic" jsonschema:"the fork's topic: give it to send_message, and to disengage at the end"`
	ThreadID string `json:"thread_id" jsonschema:"the thread where the fork is, empty for the chat outside of threads"`
}

func forkTopic() Tool {
	return define(Tool{
		Name: "fork_topic", Title: "Fork the topic", Kind: Adds,
		Description: "Begins a topic beside the current one, with a fresh session that knows the corrected " +
			"message and what it answers. Use it when a wrong answer takes some questions to correct. " +
			"Then send_message with that topic asks the users there. Where the fork has a thread of its own " +
			"(Discord and Slack, outside of threads), all that they write in it runs in the fork; elsewhere, " +
			"what replies to the fork's messages does; in the web chat the fork is a tab. " +
			"A Slack thread does not show what a message replies to: there all messages run in the fork until it " +
			"answers the parent topic. From the fork, post one corrected answer with send_message and the parent " +
			"topic, and disengage the fork.",
		Bounds: map[string]Bound{"topic": Text(0, maxTopic), "off_message_id": Number(0, maxID)},
	}, func(ctx context.Context, c *Caller, in forkTopicIn) (out forkTopicOut, err error) {
		var run int64
		out, err = once(ctx, c, in, func(tx *store.Tx) (forkTopicOut, error) {
			f, err := c.fork(ctx, tx, in)
			if err != nil {
				return forkTopicOut{}, err
			}
			if err := rows.PutFork(tx, f); err != nil {
				return forkTopicOut{}, err
			}
			run, err = rows.ResetSession(tx, f.Folder, f.Topic, f.CreatedAt)
			return forkTopicOut{Topic: f.Topic, ThreadID: f.ThreadID}, err
		})
		if err == nil && run != 0 {
			c.Services.Runs.Drain(run)
		}
		return out, err
	})
}

// fork is the fork that a call asks for.
func (c *Caller) fork(ctx context.Context, tx *store.Tx, in forkTopicIn) (*msg.Fork, error) {
	if c.Turn.WorksForGroup() {
		return nil, refuse("you work for another group, in a topic of this task alone: say in your answer " +
			"what was wrong, and that group corrects it")
	}
	chat, err := tx.Chat(ctx, c.Turn.ChatJID)
	if err != nil {
		return nil, err
	}
	kind := msg.KindOfJID(c.Turn.ChatJID)
	if chat != nil {
		kind = chat.Kind
		if chat.StickyTopic != "" {
			return nil, refuse("users have pinned this chat to topic %s, so what they write would not reach a fork: "+
				"correct the answer here", chat.StickyTopic)
		}
	}
	off, err := c.forkedMessage(ctx, tx, in.OffMessageID)
	if err != nil {
		return nil, err
	}
	f := &msg.Fork{ChatJID: c.Turn.ChatJID, Folder: c.Turn.Folder, ThreadID: c.Turn.ThreadID, MessageID: off.ID,
		CreatedAt: c.Services.now()}
	if f.Topic, err = forkName(ctx, tx, c.Turn, in.Topic); err != nil || c.Turn.ThreadID != "" ||
		msg.ForkThread(c.Turn.ChatJID, kind, "-") == "" {
		return f, err
	}
	if off.PlatformID == "" {
		return nil, refuse("message %d is not delivered yet, so no thread can begin at it: try again later, "+
			"or give off_message_id of an older one", off.ID)
	}
	f.ThreadID, f.OwnThread = msg.ForkThread(c.Turn.ChatJID, kind, off.PlatformID), true
	return f, checkThreadFree(ctx, tx, f)
}

// checkThreadFree returns a refusal if the thread of a message has a conversation already.
func checkThreadFree(ctx context.Context, tx *store.Tx, f *msg.Fork) error {
	topic, err := factrows.TopicOfThread(ctx, tx.Reader, f.ChatJID, f.ThreadID)
	if err != nil {
		return err
	}
	fork, err := tx.ForkOfThread(ctx, f.ChatJID, f.ThreadID)
	if err != nil {
		return err
	}
	if fork != nil && fork.EndedAt == 0 {
		topic = fork.Topic
	}
	if topic == "" {
		session, err := factrows.Session(ctx, tx.Reader, f.Folder, f.ThreadID)
		if err != nil || session == "" {
			return err
		}
		topic = f.ThreadID
	}
	return refuse("the thread of message %d is topic %s already: work there, with send_message and that topic, "+
		"or give off_message_id of another message", f.MessageID, topic)
}

// forkedMessage is the message that a fork begins at: one of the caller's chat, thread and topic.
func (c *Caller) forkedMessage(ctx context.Context, tx *store.Tx, id int64) (*msg.Message, error) {
	if id == 0 {
		var err error
		if id, err = corrected(ctx, tx, c.Turn); err != nil {
			return nil, err
		}
		if id == 0 {
			return nil, refuse("you have not answered here yet: give off_message_id, the id of the message to begin at")
		}
	}
	m, err := c.CheckMessage(ctx, tx.Reader, id)
	if err != nil {
		return nil, err
	}
	if m.ChatJID != c.Turn.ChatJID || m.ThreadID != c.Turn.ThreadID {
		return nil, refuse("message %d is not in this chat and thread: give off_message_id of one that is", id)
	}
	topic, err := topicOf(ctx, tx.Reader, m)
	if err == nil && topic != c.Turn.Topic {
		err = refuse("message %d is of another topic, %q: give off_message_id of one of your topic, %q", id, topic,
			c.Turn.Topic)
	}
	return m, err
}

// maxCorrected is how far a reply chain is followed back to an own message.
const maxCorrected = 20

// corrected is the group's message that a turn's replies lead to, else its newest
// answer in this place; 0 for none.
func corrected(ctx context.Context, tx *store.Tx, t *msg.Turn) (int64, error) {
	list, err := factrows.TurnMessages(ctx, tx.Reader, t.ID)
	if err != nil {
		return 0, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		m := list[i]
		for range maxCorrected {
			if m == nil || m.ReplyToID == "" {
				break
			}
			if m, err = tx.MessageByPlatformID(ctx, t.ChatJID, m.ReplyToID); err != nil {
				return 0, err
			}
			if m == nil || m.Direction != msg.Out || m.ThreadID != t.ThreadID || m.ChatJID != t.ChatJID {
				continue
			}
			topic, err := topicOf(ctx, tx.Reader, m)
			if err != nil || topic == t.Topic {
				return m.ID, err
			}
		}
	}
	return rows.LastAnswer(ctx, tx.Reader, t.Folder, t.ChatJID, t.Place)
}

const (
	// maxForks bounds the open forks of a group in a chat.
	maxForks = 20
	// maxForkNames bounds the search for a free name.
	maxForkNames = 1000
)

// forkName is the topic of a fork of a turn's topic: the one asked for, or the first free one.
func forkName(ctx context.Context, tx *store.Tx, t *msg.Turn, asked string) (string, error) {
	open, err := rows.OpenForks(ctx, tx.Reader, t.Folder, t.ChatJID, maxForks)
	if err != nil {
		return "", err
	}
	if len(open) == maxForks {
		return "", refuse("this chat has %d open forks: disengage those that are settled, of %s", maxForks,
			strings.Join(open, ", "))
	}
	if asked != "" {
		return asked, checkForkName(ctx, tx, t, asked)
	}
	n, err := rows.LastFork(ctx, tx.Reader, t.ChatJID, msg.CorrectionTopic(t.Topic, 1))
	if err != nil {
		return "", err
	}
	for range maxForkNames {
		n++
		topic := msg.CorrectionTopic(t.Topic, n)
		if len(topic) > maxTopic {
			return "", refuse("the name of this topic is too long to fork it: correct the answer here")
		}
		taken, err := rows.ForkTaken(ctx, tx.Reader, t.Folder, t.ChatJID, topic)
		if err != nil || !taken {
			return topic, err
		}
	}
	return "", refuse("no name such as %s is free: give a topic with another one", msg.CorrectionTopic(t.Topic, n))
}

// checkForkName returns a refusal unless a topic that was asked for can become a fork.
func checkForkName(ctx context.Context, tx *store.Tx, t *msg.Turn, topic string) error {
	if _, ok := msg.ForkName(t.Topic, topic); !ok {
		return refuse("topic %.80q is not a fork of the current one: write one such as %s, the current topic and %s",
			topic, msg.CorrectionTopic(t.Topic, 1), msg.TopicRule)
	}
	fork, err := tx.Fork(ctx, t.ChatJID, topic)
	if err != nil {
		return err
	}
	if fork != nil && fork.EndedAt != 0 {
		return refuse("topic %.80q was a fork that is over: give another name, or leave topic out", topic)
	}
	taken, err := rows.ForkTaken(ctx, tx.Reader, t.Folder, t.ChatJID, topic)
	if err == nil && taken {
		err = refuse("topic %.80q exists already: work there, with send_message and that topic, or leave topic out "+
			"for a free name", topic)
	}
	return err
}

// endForkInThread ends the fork that a turn is in with its message to a topic, if that is the parent,
// in a thread where all messages run in the fork: from then on they run in the parent again.
func endForkInThread(ctx context.Context, tx *store.Tx, t *msg.Turn, topic string, now int64) error {
	fork, err := tx.Fork(ctx, t.ChatJID, t.Topic)
	if err != nil || fork == nil || fork.OwnThread || fork.Folder != t.Folder ||
		msg.LinksReplies(t.ChatJID, t.ThreadID) {
		return err
	}
	if topic != fork.Parent() && topic != t.Place {
		return nil
	}
	return tx.EndFork(t.ChatJID, t.Topic, now)
}

// forkIn is the fork that a call about engagement names, open or ended; nil if its topic is
// none of the caller's reach.
func (c *Caller) forkIn(ctx context.Context, r store.Reader, in engageIn) (*msg.Fork, error) {
	fork, err := r.Fork(ctx, in.JID, in.Topic)
	if err != nil || fork == nil || !c.Reaches(fork.Folder) {
		return nil, err
	}
	return fork, nil
}

// endForkWindow ends the window where a fork is, if its group may: without a window, it is
// over as well.
func (c *Caller) endForkWindow(ctx context.Context, request routeapi.EngagementRequest, fork *msg.Fork) error {
	request.Topic, request.Caller = new(fork.Place()), fork.Folder
	err := c.Services.Routd.Do(ctx, http.MethodPost, routeapi.EngagementPath, request, nil)
	if err == nil || apierr.KindOf(err) == apierr.Forbidden {
		return nil
	}
	return explainEngagement(request, err)
}
