package tools

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"

	"arizuko/gated/internal/contextobjects"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Bounds of the tools of context objects.
const (
	maxChain  = 20 // messages of a reply chain
	maxUser   = 200
	maxKind   = 30 // characters of a kind
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
	OwnedBySender   *bool    `json:"owned_by_sender,omitempty" jsonschema:"whether it is the sender's own; left out if the sender is unknown"`
}

func describeMatches(q *contextobjects.Query, all []contextobjects.Match) []contextObject {
	out := []contextObject{}
	for _, m := range all {
		o := m.Object
		d := contextObject{ObjectID: o.ID, Kind: string(o.Kind), SourceMessageID: o.SourceMessageID, TitleOrLabel: o.Label, Confidence: m.Confidence,
			WhyActive: m.Reasons.Codes(), CreatedAt: o.CreatedAt, LastTouchedAt: o.LastTouchedAt, CreatedByBot: o.CreatedByBot}
		if d.TitleOrLabel == "" {
			d.TitleOrLabel = o.URL
		}
		if q.Sender != "" {
			owned := o.CreatedBy == q.Sender
			d.OwnedBySender = &owned
		}
		out = append(out, d)
	}
	return out
}

// contextTopic is the topic that the caller's objects belong to: the turn's, for a delegated turn
// that of the turn it was delegated from. known is false if that turn is of another chat or gone.
func (c *Caller) contextTopic(ctx context.Context, r store.Reader) (topic string, known bool, err error) {
	if c.RootTurn == c.TurnID {
		return c.Topic, true, nil
	}
	root, err := r.Turn(ctx, c.RootTurn)
	if err != nil || root == nil || root.ChatJID != c.ChatJID {
		return "", false, err
	}
	return root.Topic, true, nil
}

// contextQuery is a query for what the caller sees. replyTo is the message that is answered, 0 for none.
func (c *Caller) contextQuery(ctx context.Context, r store.Reader, in contextIn) (q *contextobjects.Query, replyTo int64, err error) {
	if in.ChatID != nil && *in.ChatID != c.ChatJID {
		return nil, 0, refuse("chat %.100q is out of reach here: leave chat_id out, only objects of this chat are listed", *in.ChatID)
	}
	if err := c.Services.Objects.Follow(ctx, r, c.Services.now()); err != nil {
		return nil, 0, err
	}
	q = &contextobjects.Query{ChatJID: c.ChatJID, Sender: in.SenderUserID, Now: c.Services.now()}
	if q.Topic, q.TopicKnown, err = c.contextTopic(ctx, r); err != nil {
		return nil, 0, err
	}
	if in.TopicID != nil {
		q.Topic, q.TopicKnown = *in.TopicID, true
	}
	if q.Topics, err = r.ChatHasTopics(ctx, c.ChatJID); err != nil {
		return nil, 0, err
	}
	current := in.CurrentMessageID
	if current == 0 {
		t, err := r.Turn(ctx, c.TurnID)
		if err != nil || t == nil {
			return nil, 0, err
		}
		current = t.TriggerMessageID
	}
	m, err := c.ownMessage(ctx, r, current)
	if err != nil {
		return nil, 0, err
	}
	if q.Sender == "" && m.Direction == msg.In {
		q.Sender = m.Sender
	}
	q.ReplyChain, err = c.chainOf(ctx, r, m, in.ReplyToMessageID)
	if len(q.ReplyChain) > 1 {
		replyTo = q.ReplyChain[1]
	}
	return q, replyTo, err
}

// ownMessage returns a message of the caller's chat.
func (c *Caller) ownMessage(ctx context.Context, r store.Reader, id int64) (*msg.Message, error) {
	m, err := c.CheckMessage(ctx, r, id)
	if err == nil && m.ChatJID != c.ChatJID {
		err = refuse("message %d is out of reach here: it is of another chat", id)
	}
	return m, err
}

// chainOf are a message and those it answers, the nearest first. replyTo takes the place of what the
// message answers; 0 leaves that.
func (c *Caller) chainOf(ctx context.Context, r store.Reader, m *msg.Message, replyTo int64) ([]int64, error) {
	chain := []int64{m.ID}
	if replyTo != 0 {
		next, err := c.ownMessage(ctx, r, replyTo)
		if err != nil {
			return nil, err
		}
		chain, m = append(chain, next.ID), next
	}
	for len(chain) <= maxChain && m.ReplyToID != "" {
		next, err := r.MessageByPlatformID(ctx, c.ChatJID, m.ReplyToID)
		if err != nil {
			return nil, err
		}
		if next == nil || slices.Contains(chain, next.ID) {
			break
		}
		chain, m = append(chain, next.ID), next
	}
	return chain, nil
}

// objectLog is for the one line of a call about context objects.
func (c *Caller) objectLog(q *contextobjects.Query, count int, scope contextobjects.Scope, all []contextobjects.Match, truncated bool) *slog.Logger {
	ids := make([]string, 0, len(all))
	for _, m := range all[:min(len(all), 3)] {
		ids = append(ids, m.Object.ID)
	}
	return c.Services.Log.With("request", rand.Text()[:8], "chat", q.ChatJID, "topic", q.Topic, "count", count, "scope", scope, "ids", ids, "truncated", truncated)
}

// results clamps max_results.
func results(n *int) int {
	if n == nil {
		return contextobjects.DefaultResults
	}
	return min(max(*n, 1), contextobjects.MaxResults)
}
