package tools

import (
	"context"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/store"
)

type resetSessionIn struct {
	GroupFolder string  `json:"groupFolder" jsonschema:"the group: your own, as the prompt names it, or one below it"`
	Topic       *string `json:"topic,omitempty" jsonschema:"the topic; left out: the current one of your own group, the default topic of another"`
}

type resetSessionOut struct {
	OK bool `json:"ok" jsonschema:"true"`
}

func resetSession() Tool {
	return define(Tool{
		Name: "reset_session", Title: "Begin a new session", Kind: Removes,
		Description: "Makes the next message of a topic begin a new conversation, without memory of this one. Use it when a user wants to start over, or when the conversation so far misleads you. " +
			"Files and the history of the chat stay.",
		Bounds: map[string]Bound{"groupFolder": Text(1, maxTopic), "topic": Text(0, maxTopic)},
	}, func(ctx context.Context, c *Caller, in resetSessionIn) (out resetSessionOut, err error) {
		if err := c.CheckFolder(in.GroupFolder); err != nil {
			return out, err
		}
		topic := ""
		switch {
		case in.Topic != nil:
			topic = *in.Topic
		case in.GroupFolder == c.Turn.Folder:
			topic = c.Turn.Topic
		}
		var run int64
		out, err = once(ctx, c, in, func(tx *store.Tx) (resetSessionOut, error) {
			if err := c.checkAccess(ctx, tx.Reader, in.GroupFolder); err != nil {
				return resetSessionOut{}, err
			}
			run, err = rows.ResetSession(tx, in.GroupFolder, topic, c.Services.now())
			return resetSessionOut{OK: true}, err
		})
		if err == nil && run != 0 {
			c.Services.Runs.Drain(run)
		}
		return out, err
	})
}
