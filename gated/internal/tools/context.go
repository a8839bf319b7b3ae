package tools

import (
	"cmp"
	"context"
	"log/slog"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Bounds of the tools of context objects.
const (
	maxChain  = 20 // messages of a reply chain
	maxUser   = 200
	maxPhrase = 4000
)

// contextIn is where a call about context objects looks. All of it defaults to the turn.
type contextIn struct {
	ChatID           *string `json:"chat_id,omitempty" jsonschema:"this chat; left out: this chat, there is no other"`
	TopicID          *string `json:"topic_id,omitempty" jsonschema:"a topic of this chat; left out: that of the message you answer"`
	CurrentMessageID int64   `json:"current_message_id,omitempty" jsonschema:"left out: the message you answer"`
	ReplyToMessageID int64   `json:"reply_to_message_id,omitempty" jsonschema:"left out: what the current message replies to"`
	SenderUserID     string  `json:"sender_user_id,omitempty" jsonschema:"sender id as in prompts; left out: that of the current message"`
}

// contextObject is an active object as the model reads it.
type contextObject struct {
	ObjectID        string   `json:"object_id" jsonschema:"its id in this chat; the number in it is the id of the message, poll or reminder"`
	Kind            string   `json:"kind" jsonschema:"what it is"`
	SourceMessageID int64    `json:"source_message_id,omitempty" jsonschema:"the message it comes from, as in prompts"`
	TitleOrLabel    string   `json:"title_or_label,omitempty" jsonschema:"what it is called, or its URL; text of users"`
	Confidence      float64  `json:"confidence" jsonschema:"its rank, 0 to 1"`
	WhyActive       []string `json:"why_active" jsonschema:"reason codes"`
	CreatedAt       int64    `json:"created_at" jsonschema:"when it became active, unix milliseconds"`
	LastTouchedAt   int64    `json:"last_touched_at" jsonschema:"the last event about it, unix milliseconds"`
	CreatedByBot    bool     `json:"created_by_bot" jsonschema:"whether an agent made it"`
	OwnedBySender   *bool    `json:"owned_by_sender,omitempty" jsonschema:"whether it is the sender's own; left out if the sender or the owner is unknown"`
}

func describeMatches(q *contextobjects.Query, all []contextobjects.Match) []contextObject {
	out := []contextObject{}
	for _, m := range all {
		o := m.Object
		d := contextObject{ObjectID: o.ID, Kind: string(o.Kind), SourceMessageID: o.SourceMessageID,
			TitleOrLabel: cmp.Or(o.Label, o.URL), Confidence: m.Confidence, WhyActive: m.Reasons.Codes(),
			CreatedAt: o.CreatedAt, LastTouchedAt: o.LastTouchedAt, CreatedByBot: o.CreatedByBot}
		if q.Sender != "" && (o.CreatedBy != "" || o.CreatedByBot) {
			owned := o.CreatedBy == q.Sender
			d.OwnedBySender = &owned
		}
		out = append(out, d)
	}
	return out
}

// contextTopic is the topic that the objects of a turn belong to: the turn's, and if that works for another group that
// of the turn which asked for it. known is false if there is no such turn of this chat any more; topic is then the
// turn's own.
func contextTopic(ctx context.Context, r store.Reader, t *msg.Turn) (topic string, known bool, err error) {
	if msg.FamilyOf(t.ChatJID) == msg.PlatformGroup { // between groups each request has a topic
		return t.Topic, true, nil
	}
	asker := t
	for range msg.MaxDelegationDepth {
		if !asker.WorksForGroup() {
			break
		}
		row, err := r.Message(ctx, asker.Request())
		if err != nil || row == nil || row.ForwardedFrom == nil {
			return t.Topic, false, err
		}
		if asker, err = r.Turn(ctx, row.ForwardedFrom.TurnID); err != nil || asker == nil {
			return t.Topic, false, err
		}
	}
	if asker.WorksForGroup() || asker.ChatJID != t.ChatJID {
		return t.Topic, false, nil
	}
	return asker.Topic, true, nil
}

// contextQuery is a query for the objects that the caller sees. replyTo is the message that is answered, 0 for none.
func (c *Caller) contextQuery(ctx context.Context, r store.Reader, in contextIn) (q *contextobjects.Query,
	replyTo int64, err error) {
	if in.ChatID != nil && *in.ChatID != c.Turn.ChatJID {
		return nil, 0, refuse("chat %.100q is out of reach here: leave chat_id out, only objects of this chat are listed", *in.ChatID)
	}
	q = &contextobjects.Query{ChatJID: c.Turn.ChatJID, Sender: in.SenderUserID, Now: c.Services.now()}
	if q.Topic, q.TopicKnown, err = contextTopic(ctx, r, c.Turn); err != nil {
		return nil, 0, err
	}
	if in.TopicID != nil {
		q.Topic, q.TopicKnown = *in.TopicID, true
	}
	if q.Topics, err = rows.ChatHasTopics(ctx, r, c.Turn.ChatJID); err != nil {
		return nil, 0, err
	}
	m, err := c.currentMessage(ctx, r, in.CurrentMessageID)
	if err != nil {
		return nil, 0, err
	}
	if q.Sender == "" && m != nil && m.Direction == msg.In {
		q.Sender = m.Sender
	}
	q.ReplyChain, err = c.chainOf(ctx, r, m, in.ReplyToMessageID)
	if replyTo = in.ReplyToMessageID; replyTo == 0 && len(q.ReplyChain) > 1 {
		replyTo = q.ReplyChain[1]
	}
	return q, replyTo, err
}

// currentMessage returns the message that the caller asks about: by default the one that the turn answers, nil if that
// is of another chat, such as a request of another group or the prompt of a reminder.
func (c *Caller) currentMessage(ctx context.Context, r store.Reader, id int64) (*msg.Message, error) {
	if id != 0 {
		return c.ownMessage(ctx, r, id)
	}
	m, err := r.Message(ctx, c.Turn.TriggerMessageID)
	if err != nil || m == nil || m.ChatJID != c.Turn.ChatJID {
		return nil, err
	}
	return m, nil
}

// ownMessage returns a message of the caller's chat.
func (c *Caller) ownMessage(ctx context.Context, r store.Reader, id int64) (*msg.Message, error) {
	m, err := c.CheckMessage(ctx, r, id)
	if err == nil && m.ChatJID != c.Turn.ChatJID {
		err = refuse("message %d is out of reach here: it is of another chat", id)
	}
	return m, err
}

// chainOf are a message, nil for none, and those that it replies to, the nearest first. replyTo, unless 0, takes the
// place of the message's own reply.
func (c *Caller) chainOf(ctx context.Context, r store.Reader, m *msg.Message, replyTo int64) (chain []int64,
	err error) {
	if m != nil {
		chain = append(chain, m.ID)
	}
	if replyTo != 0 {
		if m, err = c.ownMessage(ctx, r, replyTo); err != nil {
			return nil, err
		}
		chain = append(chain, m.ID)
	}
	if m == nil {
		return chain, nil
	}
	above, err := rows.Ancestors(ctx, r, m, maxChain)
	for _, next := range above {
		chain = append(chain, next.ID)
	}
	return chain, err
}

// topicOf is the topic that a message belongs to. For one that no group has answered, the present topic of its thread
// counts, and the topic to which the chat is pinned.
func topicOf(ctx context.Context, r store.Reader, m *msg.Message) (string, error) {
	if m.TurnID != 0 {
		t, err := r.Turn(ctx, m.TurnID)
		if err != nil {
			return "", err
		}
		if t != nil && !t.WorksForGroup() && (m.Direction == msg.In || m.Topic == t.Place) {
			return t.Topic, nil
		}
	}
	bound, err := factrows.TopicOfThread(ctx, r, m.ChatJID, m.ThreadID)
	if err != nil {
		return "", err
	}
	sticky := ""
	if m.Direction == msg.In {
		chat, err := r.Chat(ctx, m.ChatJID)
		if err != nil {
			return "", err
		}
		if chat != nil {
			sticky = chat.StickyTopic
		}
	}
	return msg.EffectiveTopic(sticky, m.Topic, m.ThreadID, bound), nil
}

// sameTopic reports whether a message of a turn's chat is of the topic that the turn's objects belong to.
func sameTopic(ctx context.Context, r store.Reader, t *msg.Turn, m *msg.Message) (bool, error) {
	topic, known, err := contextTopic(ctx, r, t)
	if err != nil || m.ThreadID != t.ThreadID || !known {
		return err == nil && m.ThreadID == t.ThreadID, err
	}
	of, err := topicOf(ctx, r, m)
	return of == topic, err
}

// activateObject makes an object of the caller's chat and topic active.
func (c *Caller) activateObject(ctx context.Context, tx *store.Tx, event contextobjects.Event,
	o contextobjects.Object) (err error) {
	o.ChatJID = c.Turn.ChatJID
	if o.Topic, _, err = contextTopic(ctx, tx.Reader, c.Turn); err == nil {
		_, err = c.Services.Objects.Activate(tx, event, o, c.Services.now())
	}
	return err
}

// activateListed makes all that a call has listed active.
func activateListed[T any](ctx context.Context, c *Caller, all []T, activate func(*store.Tx, T) error) error {
	if len(all) == 0 {
		return nil
	}
	return c.write(ctx, func(tx *store.Tx) error {
		for _, one := range all {
			if err := activate(tx, one); err != nil {
				return err
			}
		}
		return nil
	})
}

// objectLog is for the one line of a call about context objects. The line that the server logs of each call has the
// same request.
func (c *Caller) objectLog(q *contextobjects.Query, res contextobjects.Result) *slog.Logger {
	ids := []string{}
	for _, m := range res.Matches[:min(len(res.Matches), 3)] {
		ids = append(ids, m.Object.ID)
	}
	return c.Services.Log.With("request", c.Request, "run", c.RunID, "turn", c.Turn.ID, "chat", q.ChatJID, "topic",
		q.Topic, "count", len(res.Matches), "scope", res.Scope, "ids", ids, "truncated", res.Truncated)
}
