package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type activateIn struct {
	Event           string `json:"event" jsonschema:"what you have just done"`
	Kind            string `json:"kind" jsonschema:"what kind of object it is"`
	SourceMessageID int64  `json:"source_message_id,omitempty" jsonschema:"the message of this chat that it is in"`
	Label           string `json:"label,omitempty" jsonschema:"a short title, in the words that users would use"`
	URL             string `json:"url,omitempty" jsonschema:"of an article or link; needed if there is no source_message_id"`
}

type activateOut struct {
	ObjectID    string `json:"object_id" jsonschema:"its id in this chat"`
	ActiveUntil int64  `json:"active_until" jsonschema:"unix milliseconds; far away for an open poll"`
}

func activateContextObject() Tool {
	return define(Tool{
		Name: "activate_context_object", Title: "Note what the conversation is about", Kind: Adds,
		Description: "Notes that the conversation is now about an object, so that later messages can refer to it. Call it right after you have summarized an article, discussed a URL, " +
			"looked into an image, video, voice message or document, used a summary again, or answered a follow-up about an object. " +
			"Bad: an attachment that was merely handed over, an old link in the history, media of another topic, something mentioned in passing. Polls and reminders are noted by their own tools.",
		Bounds: map[string]Bound{"event": OneOf(names(contextobjects.AgentEvents())...),
			"kind": OneOf(names(msg.ContextKinds())...), "label": Text(0, maxUser),
			"url": Text(0, contextobjects.MaxURL), "source_message_id": Clamped()},
	}, activate)
}

func activate(ctx context.Context, c *Caller, in activateIn) (out activateOut, err error) {
	event := contextobjects.Event(in.Event)
	kind, err := contextobjects.ParseKind(in.Kind)
	if err != nil {
		return out, refuse("%v", err)
	}
	if _, kinds := event.Rule(); !slices.Contains(kinds, kind) {
		return out, refuse("%s is about none of kind %s: use one of %v", event, kind, kinds)
	}
	o := contextobjects.Object{ChatJID: c.Turn.ChatJID, Kind: kind, SourceMessageID: in.SourceMessageID,
		Label: c.clean(in.Label), URL: c.clean(in.URL)}
	if in.SourceMessageID == 0 {
		u, err := url.Parse(in.URL)
		if kind.TTL() != msg.ContextTTLMedium || err != nil || u.Scheme != "http" && u.Scheme != "https" ||
			u.Host == "" {
			return out, refuse("give the source_message_id, or for an article, link or summary a url that begins with http:// or https://")
		}
		sum := sha256.Sum256([]byte(in.URL))
		o.ID = in.Kind + ":" + hex.EncodeToString(sum[:8]) // a summary of an article is an object beside it
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
