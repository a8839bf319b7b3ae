package tools

import (
	"context"

	"arizuko/gated/internal/contextobjects"
	"arizuko/pkg/msg"
)

type listContextIn struct {
	contextIn
	AllowedKinds []string `json:"allowed_kinds,omitempty" jsonschema:"only these kinds; left out: all"`
	MaxResults   *int     `json:"max_results,omitempty" jsonschema:"from 1 to 20; left out: 5"`
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
		Description: "Lists what this chat's conversation is about just now: summarized articles, discussed links, inspected media, open polls, reminders. " +
			"Good: to be aware of the context, as for \"what are we discussing?\", or for a follow-up after a summary, a media analysis, a poll or a reminder. " +
			"Bad: the final choice of what a user means (use resolve_reference_target), a search of the history (use search_messages), broad recall. It changes nothing.",
		Bounds: map[string]Bound{"chat_id": Text(0, maxUser), "topic_id": Text(0, maxTopic),
			"sender_user_id": Text(0, maxUser), "current_message_id": Clamped(),
			"reply_to_message_id": Clamped(), "allowed_kinds": List(0, 12),
			"allowed_kinds[]": OneOf(names(msg.ContextKinds())...), "max_results": Clamped()},
	}, func(ctx context.Context, c *Caller, in listContextIn) (out listContextOut, err error) {
		kinds, err := contextobjects.KindsOf(in.AllowedKinds)
		if err != nil {
			return out, refuse("%v", err)
		}
		r := c.Services.Store.Reader
		q, _, err := c.contextQuery(ctx, r, in.contextIn)
		if err != nil {
			return out, err
		}
		q.Kinds, q.Max = kinds, contextobjects.DefaultResults
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
