package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Asks asks users.
type Asks interface {
	// Ask stores a question of a turn, or finds the same one that was asked before. redact hides secrets in its texts.
	Ask(t *msg.Turn, q *rows.Question, problem error, redact func(string) string) (*msg.Ask, error)
	// AwaitAsk waits until a question has ended. It returns the error of ctx if that ends first.
	AwaitAsk(ctx context.Context, id int64) (*msg.Ask, error)
}

type askUserIn struct {
	Question string   `json:"question" jsonschema:"the question, on one line, as plain text"`
	Options  []string `json:"options" jsonschema:"what the user chooses from, 2 to 10 short different texts"`
}

type askUserOut struct {
	Answered bool   `json:"answered" jsonschema:"false: no answer came in time, which counts as no"`
	Option   string `json:"option,omitempty" jsonschema:"the chosen option"`
	By       string `json:"by,omitempty" jsonschema:"the sender who chose it, as in prompts"`
}

func askUser() Tool {
	return define(Tool{
		Name: "ask_user", Title: "Ask the user", Kind: Kind{Idempotent: true, Waits: true},
		Description: "Asks the user whose message you answer to choose one of a few options, with buttons where the " +
			"platform has them, and waits for the answer, for minutes if necessary. Use it when you cannot go " +
			"on without a decision and its options are known. Ask open questions, and those that can wait, " +
			"in your answer; use poll_create if a whole group must decide. No answer in time counts as no. " +
			"If the call ends before that, the same call waits for the same question.",
		Bounds: map[string]Bound{
			"question": Text(1, agentproto.MaxQuestion), "options": List(agentproto.MinOptions, agentproto.MaxOptions),
			"options[]": Text(1, agentproto.MaxOption),
		},
	}, func(ctx context.Context, c *Caller, in askUserIn) (out askUserOut, err error) {
		ask := agentproto.Ask{Question: oneLine(c.clean(in.Question))}
		for _, option := range in.Options {
			ask.Options = append(ask.Options, oneLine(c.clean(option)))
		}
		if err := ask.Check(); err != nil {
			return out, refuse("%v: change that and call ask_user again", err)
		}
		hash, err := hashCall(c.Tool, in)
		if err == nil {
			err = c.checkOpen(ctx, c.Services.Store.Reader)
		}
		if err == nil {
			err = checkTakes(ctx, c.Services.Store.Reader, c.Turn.ChatJID, c.Turn.ThreadID,
				"ask with send_message, and the id of a post as topic")
		}
		if err == nil {
			err = c.place.park()
		}
		if err != nil {
			return out, err
		}
		id := fmt.Sprintf("%s-%s-%d", c.Tool, hash, c.access.actedBefore(c.Turn.ID, hash))
		asked, err := c.Services.Asks.Ask(c.Turn, &rows.Question{AskID: id, Question: ask.Question,
			Options: ask.Options}, nil, c.Redact)
		switch {
		case errors.Is(err, rows.ErrNoUser), errors.Is(err, rows.ErrTooManyAsks):
			return out, refuse("the question was not asked: %v. Ask in your answer, or go on without", err)
		case errors.Is(err, store.ErrStale):
			return out, errEnded
		case err != nil:
			return out, err
		}
		if asked, err = c.Services.Asks.AwaitAsk(ctx, asked.ID); err != nil {
			return out, err
		}
		c.access.noteActed(c.Turn.ID, hash) // the next call of the kind is another question
		if why, err := rows.AskLost(ctx, c.Services.Store.Reader, asked); err != nil || why != "" {
			return out, cmp.Or(err,
				refuse("the question has no answer: %s. Go on without, or end your turn with what you have", why))
		}
		return askUserOut{Answered: asked.State == msg.AskAnswered, Option: asked.Option, By: asked.AnsweredBy}, nil
	})
}
