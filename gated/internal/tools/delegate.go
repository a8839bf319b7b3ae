package tools

import (
	"context"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

type delegateIn struct {
	Folder string `json:"folder" jsonschema:"the group below yours that is to do the work, by its full name such as acme/eng"`
	Prompt string `json:"prompt" jsonschema:"the work, with everything that the other agent must know: it reads neither the messages of this chat nor your session"`
}

func delegate() Tool {
	return define(Tool{
		Name: delegateName, Title: "Delegate work to a group below", Kind: Adds,
		Description: "Gives work to the agent of a group below yours, which answers straight into this chat, beside your own answer. Use it for what that group knows or owns. " +
			"You get no answer back: do not wait for one, and do not do the same work yourself. Tell the user briefly who works on what.",
		Bounds: map[string]Bound{"folder": Text(1, maxTopic), "prompt": Text(1, maxText)},
	}, func(ctx context.Context, c *Caller, in delegateIn) (out messageOut, err error) {
		if err := c.CheckFolder(in.Folder); err != nil {
			return out, err
		}
		in.Prompt = c.clean(in.Prompt)
		if in.Prompt == "" {
			return out, refuse("prompt is empty: say what the other agent is to do")
		}
		return forward(ctx, c, in, func(tx *store.Tx) (*msg.Message, error) {
			if err := checkBelow(ctx, tx, c.Turn.Folder, in.Folder); err != nil {
				return nil, err
			}
			return c.request(ctx, tx, msg.Delegation, in.Folder, in.Prompt)
		})
	})
}

// checkBelow returns a refusal unless a folder is that of a group below the own one.
func checkBelow(ctx context.Context, tx *store.Tx, own, folder string) error {
	groups, err := tx.Groups(ctx)
	if err != nil {
		return err
	}
	var below []string
	for _, g := range groups {
		if g.Folder != own && msg.Within(g.Folder, own) {
			if g.Folder == folder {
				return nil
			}
			below = append(below, g.Folder)
		}
	}
	if len(below) == 0 {
		return refuse("there is no group below %s: do the work yourself", own)
	}
	const maxNamed = 20
	if len(below) > maxNamed {
		below = append(below[:maxNamed], "…")
	}
	return refuse("%s is not a group below yours: choose one of %s", folder, strings.Join(below, ", "))
}
