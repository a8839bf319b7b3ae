package tools

import (
	"context"
	"math"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
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
		Description: "Makes the next message of a topic begin a new conversation, without memory of this one. " +
			"Use it when a user wants to start over, or when the conversation so far misleads you. " +
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
		c.replaced = resetSessionIn{in.GroupFolder, &topic}
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

const (
	defaultRecent = 10
	maxRecent     = 100
)

type inspectSessionIn struct {
	Topic string `json:"topic,omitempty" jsonschema:"the topic of your group; left out: the default topic"`
	Limit *int   `json:"limit,omitempty" jsonschema:"how many runs to list, from 1 to 100; left out: 10"`
}

type inspectSessionOut struct {
	Folder    string      `json:"folder" jsonschema:"your group"`
	Topic     string      `json:"topic" jsonschema:"the topic"`
	SessionID string      `json:"session_id" jsonschema:"the session that the next message continues; empty: it begins a new one"`
	Recent    []recentRun `json:"recent" jsonschema:"runs of the topic, newest first"`
}

type recentRun struct {
	StartedAt    int64  `json:"started_at" jsonschema:"unix milliseconds"`
	EndedAt      int64  `json:"ended_at" jsonschema:"unix milliseconds; 0: it has not ended"`
	SessionID    string `json:"session_id" jsonschema:"its session"`
	Result       string `json:"result" jsonschema:"how it ended"`
	Error        string `json:"error" jsonschema:"what went wrong"`
	MessageCount int    `json:"message_count" jsonschema:"how many turns it answered"`
}

func inspectSession() Tool {
	return define(Tool{
		Name: "inspect_session", Title: "Inspect a session", Kind: Reads,
		Description: "Shows which session a topic of your group is in, and its last runs with their errors. " +
			"Use it to find out why a conversation was lost or an earlier answer failed.",
		Bounds: map[string]Bound{"topic": Text(0, maxTopic)},
	}, func(ctx context.Context, c *Caller, in inspectSessionIn) (out inspectSessionOut, err error) {
		limit := defaultRecent
		if in.Limit != nil {
			limit = min(max(*in.Limit, 1), maxRecent)
		}
		out = inspectSessionOut{Folder: c.Turn.Folder, Topic: in.Topic, Recent: []recentRun{}}
		r := c.Services.Store
		if out.SessionID, err = factrows.Session(ctx, r.Reader, c.Turn.Folder, in.Topic); err != nil {
			return out, err
		}
		past, err := rows.PastSessions(ctx, r.Reader, c.Turn.Folder, in.Topic, math.MaxInt64, limit)
		for _, p := range past {
			p.Error = c.Redact(p.Error)
			out.Recent = append(out.Recent, recentRun{
				StartedAt: p.StartedAt, EndedAt: p.EndedAt, SessionID: p.SessionID, Result: p.Result, Error: p.Error,
				MessageCount: p.MessageCount,
			})
		}
		return out, err
	})
}
