package tools

import (
	"context"
	"slices"

	"arizuko/gated/internal/contextobjects"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type resolveIn struct {
	RawText          string   `json:"raw_text,omitempty" jsonschema:"the user's words; an object's id, URL or whole label in them decides, nothing else is read from them"`
	Kind             string   `json:"kind,omitempty" jsonschema:"what kind of object is meant; left out: any"`
	Ordinal          *int     `json:"ordinal,omitempty" jsonschema:"1 is the oldest that fits, 2 the second, -1 the newest"`
	LabelWords       []string `json:"label_words,omitempty" jsonschema:"words that all stand in its title"`
	ReplyToMessageID int64    `json:"reply_to_message_id,omitempty" jsonschema:"left out: what the message you answer replies to"`
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
		Description: "Finds the one object of this conversation that a user refers to, as in \"translate it\", \"close that poll\", \"the second article\". " +
			"Good: before you act on a target that the user did not name exactly. Bad: to see what there is (use list_active_context_objects), or to search the history. " +
			"It never guesses. If the reference is ambiguous, ask the user. A resolved object stays active for longer.",
		Bounds: map[string]Bound{"raw_text": Text(0, maxPhrase), "kind": OneOf(names(msg.ContextKinds())...),
			"ordinal": Number(-100, 100), "label_words": List(0, 20),
			"label_words[]": Text(1, 100), "reply_to_message_id": Clamped()},
	}, resolve)
}

func resolve(ctx context.Context, c *Caller, in resolveIn) (out resolveOut, err error) {
	var kinds []contextobjects.Kind
	if in.Kind != "" {
		if kinds, err = contextobjects.KindsOf([]string{in.Kind}); err != nil {
			return out, refuse("%v", err)
		}
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
