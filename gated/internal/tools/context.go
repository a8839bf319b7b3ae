package tools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/url"
	"slices"

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
		return nil, 0, refuse("chat %.100q is out of reach here: leave chat_id out, only objects of this "+
			"chat are listed",
			*in.ChatID)
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

type listContextIn struct {
	contextIn
	AllowedKinds []contextobjects.Kind `json:"allowed_kinds,omitempty" jsonschema:"only these kinds; left out: all"`
	MaxResults   *int                  `json:"max_results,omitempty" jsonschema:"from 1 to 20; left out: 5"`
}

type listContextOut struct {
	Objects     []contextObject `json:"objects" jsonschema:"best first; empty: nothing is active"`
	ScopeUsed   string          `json:"scope_used" jsonschema:"reply_chain, topic or chat"`
	GeneratedAt int64           `json:"generated_at" jsonschema:"unix milliseconds"`
	Truncated   bool            `json:"truncated" jsonschema:"there are more than max_results"`
}

func listActiveContextObjects() Tool {
	return define(Tool{
		Name: "list_active_context_objects", Title: "List what the conversation is about", Kind: Reads,
		Description: "Lists what this chat's conversation is about just now: summarized articles, discussed links, " +
			"inspected media, open polls, reminders. Good: to be aware of the context, as for \"what are we " +
			"discussing?\", or for a follow-up after a summary, a media analysis, a poll or a reminder. " +
			"Bad: the final choice of what a user means (use resolve_reference_target), a search of the history (use " +
			"search_messages), broad recall. It changes nothing.",
		Bounds: map[string]Bound{"chat_id": Text(0, maxUser), "topic_id": Text(0, maxTopic),
			"sender_user_id": Text(0, maxUser), "allowed_kinds": List(0, 12),
			"allowed_kinds[]": OneOf(msg.ContextKinds()...)},
	}, func(ctx context.Context, c *Caller, in listContextIn) (out listContextOut, err error) {
		r := c.Services.Store.Reader
		q, _, err := c.contextQuery(ctx, r, in.contextIn)
		if err != nil {
			return out, err
		}
		q.Kinds, q.Max = in.AllowedKinds, contextobjects.DefaultResults
		if in.MaxResults != nil {
			q.Max = *in.MaxResults // Lookup takes the nearest number that it can use
		}
		res, err := c.Services.Objects.Lookup(ctx, r, q)
		if err != nil {
			return out, err
		}
		c.objectLog(q, res).Info("context objects listed")
		return listContextOut{Objects: describeMatches(q, res.Matches), ScopeUsed: string(res.Scope),
			GeneratedAt: q.Now, Truncated: res.Truncated}, nil
	})
}

type resolveIn struct {
	RawText          string              `json:"raw_text,omitempty" jsonschema:"the user's words; an object's id, URL or whole label in them decides, nothing else is read from them"`
	Kind             contextobjects.Kind `json:"kind,omitempty" jsonschema:"what kind of object is meant; left out: any"`
	Ordinal          *int                `json:"ordinal,omitempty" jsonschema:"1 is the oldest that fits, 2 the second, -1 the newest"`
	LabelWords       []string            `json:"label_words,omitempty" jsonschema:"words that all stand in its title"`
	ReplyToMessageID int64               `json:"reply_to_message_id,omitempty" jsonschema:"left out: what the message you answer replies to"`
}

type resolveOut struct {
	Result     string          `json:"result" jsonschema:"resolved, ambiguous or not_found"`
	Object     *contextObject  `json:"object,omitempty" jsonschema:"the one that is meant, if resolved"`
	Candidates []contextObject `json:"candidates,omitempty" jsonschema:"best first, if ambiguous: ask which one, or give more arguments"`
	ScopeUsed  string          `json:"scope_used" jsonschema:"reply_chain, topic or chat"`
	Truncated  bool            `json:"truncated" jsonschema:"there are more candidates"`
}

func resolveReferenceTarget() Tool {
	return define(Tool{
		Name: "resolve_reference_target", Title: "Resolve what a user refers to", Kind: Adds,
		Description: "Finds the one object of this conversation that a user refers to, as in \"translate it\", " +
			"\"close that poll\", \"the second article\". Good: before you act on a target that the user did not " +
			"name exactly. Bad: to see what there is (use list_active_context_objects), or to search the history. " +
			"It never guesses. If the reference is ambiguous, ask the user. A resolved object stays active for longer.",
		Bounds: map[string]Bound{"raw_text": Text(0, maxPhrase), "kind": OneOf(msg.ContextKinds()...),
			"ordinal": Number(-100, 100), "label_words": List(0, 20),
			"label_words[]": Text(1, 100)},
	}, resolve)
}

func resolve(ctx context.Context, c *Caller, in resolveIn) (out resolveOut, err error) {
	var kinds []contextobjects.Kind
	if in.Kind != "" {
		kinds = []contextobjects.Kind{in.Kind}
	}
	ref := contextobjects.Reference{RawText: in.RawText, LabelWords: in.LabelWords}
	if in.Ordinal != nil {
		if ref.Ordinal = *in.Ordinal; ref.Ordinal == 0 {
			return out, refuse("ordinal is 0: 1 is the oldest, -1 the newest, or leave it out")
		}
	}
	return once(ctx, c, in, func(tx *store.Tx) (resolveOut, error) {
		q, replyTo, err := c.contextQuery(ctx, tx.Reader, contextIn{ReplyToMessageID: in.ReplyToMessageID})
		if err != nil {
			return resolveOut{}, err
		}
		q.Kinds, q.Max, ref.ReplyTo = kinds, contextobjects.DefaultResults, replyTo
		res, err := c.Services.Objects.Resolve(ctx, tx.Reader, q, ref)
		if err != nil {
			return resolveOut{}, err
		}
		if res.Outcome == contextobjects.NotFound && replyTo != 0 && len(in.LabelWords) == 0 && in.Ordinal == nil {
			if err := c.resolveMessage(ctx, tx, q, replyTo, &res); err != nil {
				return resolveOut{}, err
			}
		}
		if res.Outcome == contextobjects.Resolved {
			touched, err := c.Services.Objects.Activate(tx, contextobjects.ResolvedByResolver, *res.Matches[0].Object,
				q.Now)
			if err != nil {
				return resolveOut{}, err
			}
			res.Matches[0].Object, res.Matches[0].Reasons = &touched, res.Matches[0].Reasons|msg.ActivatedByResolver
		}
		c.objectLog(q, res.Result).Info("reference resolved")
		return describeResolution(q, res), nil
	})
}

// resolveMessage takes the message that is answered, if it is of a kind that was asked for and nothing else is.
func (c *Caller) resolveMessage(ctx context.Context, tx *store.Tx, q *contextobjects.Query, id int64,
	res *contextobjects.Resolution) error {
	m, err := tx.Message(ctx, id)
	if err != nil || m == nil {
		return err
	}
	o := contextobjects.Object{ChatJID: c.Turn.ChatJID, Topic: q.Topic, Kind: msg.ContextMessage, SourceMessageID: id,
		CreatedBy: m.Sender}
	if m.Direction == msg.Out {
		o.Kind, o.CreatedBy, o.CreatedByBot = msg.ContextBotMessage, "", true
	}
	if len(q.Kinds) > 0 && !slices.Contains(q.Kinds, o.Kind) {
		return nil
	}
	*res = contextobjects.Resolution{Outcome: contextobjects.Resolved, Result: contextobjects.Result{
		Matches: []contextobjects.Match{{Object: &o, Confidence: 1, Reasons: msg.SameReplyChain}},
		Scope:   contextobjects.ScopeReplyChain, Found: 1}}
	return nil
}

func describeResolution(q *contextobjects.Query, res contextobjects.Resolution) resolveOut {
	all := describeMatches(q, res.Matches)
	out := resolveOut{Result: string(res.Outcome), ScopeUsed: string(res.Scope), Truncated: res.Truncated}
	if res.Outcome == contextobjects.Resolved {
		out.Object = &all[0]
	} else {
		out.Candidates = all
	}
	return out
}

type activateIn struct {
	Event           contextobjects.Event `json:"event" jsonschema:"what you have just done"`
	Kind            contextobjects.Kind  `json:"kind" jsonschema:"what kind of object it is"`
	SourceMessageID int64                `json:"source_message_id,omitempty" jsonschema:"the message of this chat that it is in"`
	Label           string               `json:"label,omitempty" jsonschema:"a short title, in the words that users would use"`
	URL             string               `json:"url,omitempty" jsonschema:"of an article or link; needed if there is no source_message_id"`
}

type activateOut struct {
	ObjectID    string `json:"object_id" jsonschema:"its id in this chat"`
	ActiveUntil int64  `json:"active_until" jsonschema:"unix milliseconds; far away for an open poll"`
}

func activateContextObject() Tool {
	return define(Tool{
		Name: "activate_context_object", Title: "Note what the conversation is about", Kind: Adds,
		Description: "Notes that the conversation is now about an object, so that later messages can refer to it. " +
			"Call it right after you have summarized an article, discussed a URL, looked into an image, video, " +
			"voice message or document, used a summary again, or answered a follow-up about an object. " +
			"Bad: an attachment that was merely handed over, an old link in the history, media of another topic, " +
			"something mentioned in passing. Polls and reminders are noted by their own tools.",
		Bounds: map[string]Bound{"event": OneOf(contextobjects.AgentEvents()...),
			"kind": OneOf(msg.ContextKinds()...), "label": Text(0, maxUser),
			"url": Text(0, contextobjects.MaxURL)},
	}, activate)
}

func activate(ctx context.Context, c *Caller, in activateIn) (out activateOut, err error) {
	event, kind := in.Event, in.Kind
	if _, kinds := event.Rule(); !slices.Contains(kinds, kind) {
		return out, refuse("%s is about none of kind %s: use one of %v", event, kind, kinds)
	}
	o := contextobjects.Object{ChatJID: c.Turn.ChatJID, Kind: kind, SourceMessageID: in.SourceMessageID,
		Label: c.clean(in.Label), URL: c.clean(in.URL)}
	if in.SourceMessageID == 0 {
		u, err := url.Parse(in.URL)
		if kind.TTL() != msg.ContextTTLMedium || err != nil || u.Scheme != "http" && u.Scheme != "https" ||
			u.Host == "" {
			return out, refuse("give the source_message_id, or for an article, link or summary a url that " +
				"begins with http:// or https://")
		}
		sum := sha256.Sum256([]byte(in.URL))
		o.ID = string(kind) + ":" + hex.EncodeToString(sum[:8]) // a summary of an article is an object beside it
	}
	out, err = once(ctx, c, in, func(tx *store.Tx) (activateOut, error) {
		if err := c.completeObject(ctx, tx, &o); err != nil {
			return activateOut{}, err
		}
		stored, err := c.Services.Objects.Activate(tx, event, o, c.Services.now())
		return activateOut{ObjectID: stored.ID, ActiveUntil: stored.ActiveUntil}, err
	})
	if err == nil {
		c.Services.Log.Info("context object activated", "request", c.Request, "run", c.RunID, "turn", c.Turn.ID,
			"chat", o.ChatJID, "topic", o.Topic, "reason", string(event), "ids", []string{out.ObjectID})
	}
	return out, err
}

// completeObject adds what the rows have of an object, and checks that its message is of the chat and topic.
func (c *Caller) completeObject(ctx context.Context, tx *store.Tx, o *contextobjects.Object) error {
	var err error
	if o.Topic, _, err = contextTopic(ctx, tx.Reader, c.Turn); err != nil {
		return err
	}
	if o.SourceMessageID == 0 {
		return nil
	}
	m, err := c.ownMessage(ctx, tx.Reader, o.SourceMessageID)
	if err != nil {
		return err
	}
	if o.Kind.IsMedia() {
		same, err := sameTopic(ctx, tx.Reader, c.Turn, m)
		if err != nil {
			return err
		}
		if !same {
			return refuse("message %d is of another topic: its media is active there only", m.ID)
		}
	}
	o.CreatedBy = m.Sender
	if m.Direction == msg.Out {
		o.CreatedBy, o.CreatedByBot = "", true
	}
	stored, err := rows.ContextObjectOf(ctx, tx.Reader, c.Turn.ChatJID, o.Kind, m.ID, c.Services.now())
	if err != nil {
		return err
	}
	switch own := o.Kind == msg.ContextPoll || o.Kind == msg.ContextReminder; {
	case stored != nil:
		o.ID, o.DueAt = stored.ID, stored.DueAt
	case own:
		return refuse("no %s of message %d is active: list it with its own tool, which makes it active", o.Kind, m.ID)
	}
	return nil
}
