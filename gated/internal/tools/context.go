package tools

import (
	"context"
	"log/slog"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
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
	ChatID, TopicID  *string
	CurrentMessageID int64
	ReplyToMessageID int64
	SenderUserID     string
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
			TitleOrLabel: o.Label, Confidence: m.Confidence,
			WhyActive: m.Reasons.Codes(), CreatedAt: o.CreatedAt, LastTouchedAt: o.LastTouchedAt,
			CreatedByBot: o.CreatedByBot}
		if d.TitleOrLabel == "" {
			d.TitleOrLabel = o.URL
		}
		if q.Sender != "" && (o.CreatedBy != "" || o.CreatedByBot) {
			owned := o.CreatedBy == q.Sender
			d.OwnedBySender = &owned
		}
		out = append(out, d)
	}
	return out
}

// contextTopic is the topic that the caller's objects belong to: the turn's, and if that works for another group that
// of the turn which asked for it. known is false if there is no such turn of this chat any more; topic is then the
// turn's own.
func (c *Caller) contextTopic(ctx context.Context, r store.Reader) (topic string, known bool, err error) {
	t := c.Turn
	if !t.WorksForGroup() || c.platform() == msg.PlatformGroup { // between groups each request has a topic
		return t.Topic, true, nil
	}
	for range msg.MaxDelegationDepth {
		row, err := r.Message(ctx, t.Request())
		if err != nil || row == nil || row.ForwardedFrom == nil {
			return c.Turn.Topic, false, err
		}
		if t, err = r.Turn(ctx, row.ForwardedFrom.TurnID); err != nil || t == nil {
			return c.Turn.Topic, false, err
		}
		if !t.WorksForGroup() {
			break
		}
	}
	if t.WorksForGroup() || t.ChatJID != c.Turn.ChatJID {
		return c.Turn.Topic, false, nil
	}
	return t.Topic, true, nil
}

// contextQuery is a query for the objects that the caller sees. replyTo is the message that is answered, 0 for none.
func (c *Caller) contextQuery(ctx context.Context, r store.Reader, in contextIn) (q *contextobjects.Query,
	replyTo int64, err error) {
	if in.ChatID != nil && *in.ChatID != c.Turn.ChatJID {
		return nil, 0, refuse("chat %.100q is out of reach here: leave chat_id out, only objects of this chat are listed", *in.ChatID)
	}
	q = &contextobjects.Query{ChatJID: c.Turn.ChatJID, Sender: in.SenderUserID, Now: c.Services.now()}
	if q.Topic, q.TopicKnown, err = c.contextTopic(ctx, r); err != nil {
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

// chainOf are a message, nil for none, and those it answers, the nearest first. replyTo takes the place of what the
// message answers; 0 leaves that.
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

// topicOf is the topic that a message of the caller's chat belongs to. One that no group has answered is judged by the
// present topic of its thread, and by what the chat is pinned to.
func (c *Caller) topicOf(ctx context.Context, r store.Reader, m *msg.Message) (string, error) {
	if m.TurnID != 0 {
		t, err := r.Turn(ctx, m.TurnID)
		if err != nil {
			return "", err
		}
		if t != nil && !t.WorksForGroup() && (m.Direction == msg.In || m.Topic == t.Place) {
			return t.Topic, nil
		}
	}
	bound, err := r.TopicOfThread(ctx, m.ChatJID, m.ThreadID)
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

// sameTopic reports whether a message of the caller's chat is of the topic that the caller's objects belong to.
func (c *Caller) sameTopic(ctx context.Context, r store.Reader, m *msg.Message) (bool, error) {
	topic, known, err := c.contextTopic(ctx, r)
	if err != nil || m.ThreadID != c.Turn.ThreadID || !known {
		return err == nil && m.ThreadID == c.Turn.ThreadID, err
	}
	of, err := c.topicOf(ctx, r, m)
	return of == topic, err
}

// objectLog is for the one line of a call about context objects. The line that the server logs of each call has the
// same request.
func (c *Caller) objectLog(q *contextobjects.Query, count int, scope contextobjects.Scope, all []contextobjects.Match,
	truncated bool) *slog.Logger {
	ids := make([]string, 0, len(all))
	for _, m := range all[:min(len(all), 3)] {
		ids = append(ids, m.Object.ID)
	}
	return c.Services.Log.With("request", c.Request, "run", c.RunID, "turn", c.Turn.ID, "chat", q.ChatJID, "topic",
		q.Topic, "count", count, "scope", scope, "ids", ids, "truncated", truncated)
}

// results clamps max_results.
func results(n *int) int {
	if n == nil {
		return contextobjects.DefaultResults
	}
	return min(max(*n, 1), contextobjects.MaxResults)
}
