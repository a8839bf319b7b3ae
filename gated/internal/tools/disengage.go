package tools

import (
	"context"

	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

func disengage() Tool {
	return define(Tool{
		Name: "disengage", Title: "Stop listening in a place", Kind: Removes,
		Description: "Ends what engage or an answer of yours has begun: messages of the place start no turn any more, unless they mention you or reply to you. Use it when a conversation is over, or a user asks you to be quiet. " +
			"With the topic of a fork it ends the fork, and nothing else: what replies to its messages, or is written in its thread, runs in the parent topic again. Other places of the chat stay as they are.",
		Bounds: engageBounds(),
	}, func(ctx context.Context, c *Caller, in engageIn) (out engageOut, err error) {
		return onceAfter(ctx, c, in, func() (err error) {
			out, err = c.engagement(ctx, in, routeapi.EngagementRequest{TTL: new(int64)})
			return err
		}, func(tx *store.Tx) (engageOut, error) {
			fork, err := c.forkIn(ctx, tx.Reader, in)
			if err != nil || fork == nil {
				return out, err
			}
			return out, tx.EndFork(in.JID, in.Topic, c.Services.now())
		})
	})
}
