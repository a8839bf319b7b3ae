package tools

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type escalateIn struct {
	Prompt string `json:"prompt" jsonschema:"the question, with everything that the other agent must know: it reads neither the messages of this chat nor your session"`
}

func escalate() Tool {
	return define(Tool{
		Name: escalateName, Title: "Ask the group above", Kind: Adds,
		Description: "Asks the agent of the group above yours, whose answer comes back to you as a message in this topic. Use it for a decision or for knowledge that you do not have. " +
			"Finish your turn after the call, with a short word to the user if the answer may take a while: you continue when the answer arrives.",
		Bounds: map[string]Bound{"prompt": Text(1, maxText)},
	}, func(ctx context.Context, c *Caller, in escalateIn) (out messageOut, err error) {
		in.Prompt = c.clean(in.Prompt)
		if in.Prompt == "" {
			return out, refuse("prompt is empty: say what you want to know")
		}
		return forward(ctx, c, in, func(tx *store.Tx) (*msg.Message, error) {
			above, err := groupAbove(ctx, tx, c.Turn.Folder)
			if err != nil {
				return nil, err
			}
			return c.request(ctx, tx, msg.Escalation, above, in.Prompt)
		})
	})
}

// groupAbove returns the nearest group above the own one, since not each parent is a group.
func groupAbove(ctx context.Context, tx *store.Tx, own string) (string, error) {
	for folder := msg.Parent(own); folder != ""; folder = msg.Parent(folder) {
		group, err := tx.Group(ctx, folder)
		if err != nil {
			return "", err
		}
		if group != nil {
			return folder, nil
		}
	}
	return "", refuse("there is no group above %s: decide it yourself, or ask the user", own)
}
