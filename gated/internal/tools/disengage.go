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
			"With the topic of a fork it ends the fork, and nothing else: replies run in the parent topic again. Other places of the chat stay as they are.",
		Bounds:  engageBounds(),
		Example: `{"jid":"OWN_CHAT","topic":""}`,
		Foreign: []string{`{"jid":"FOREIGN_CHAT","topic":""}`},
	}, func(ctx context.Context, c *Caller, in engageIn) (out engageOut, err error) {
		place, err := c.engagementPlace(ctx, in)
		if err != nil {
			return out, err
		}
		if out, err = c.askEngagement(ctx, routeapi.EngagementRequest{JID: &in.JID, Topic: &place, TTL: new(int64), Caller: c.Turn.Folder}); err != nil {
			return out, err
		}
		return once(ctx, c, in, func(tx *store.Tx) (engageOut, error) {
			fork, err := tx.Fork(ctx, in.JID, in.Topic)
			if err != nil || fork == nil || !c.Reaches(fork.Folder) {
				return out, err
			}
			return out, tx.EndFork(in.JID, in.Topic)
		})
	})
}
