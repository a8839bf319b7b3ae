package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"arizuko/pkg/cli"
	"arizuko/pkg/msg"
)

// changeTurn returns the command that tries a turn again, or ends its wait, or that cancels it.
func (c *verbs) changeTurn(verb string) cli.Func {
	return func(ctx context.Context, args []string, out io.Writer) error { return c.change(ctx, verb, args, out) }
}

func (c *verbs) change(ctx context.Context, verb string, args []string, out io.Writer) error {
	line := c.Line(verb+" TURN", out)
	id, err := readID(line, args, "TURN", "turn")
	if err != nil {
		return err
	}
	var turn struct {
		Folder  string
		ChatJID string `json:"chat_jid"`
		State   msg.TurnState
	}
	if err := c.Call(ctx, http.MethodPost, fmt.Sprintf("/v1/turns/%d/%s", id, verb), nil, &turn); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "turn %d of %s in %s is %s\n", id, cli.PrintableLine(turn.Folder),
		cli.PrintableLine(turn.ChatJID), cli.PrintableLine(string(turn.State)))
	return err
}

// replay has a copy of a message decided again, or sent.
func (c *verbs) replay(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("replay [--again] MESSAGE", out)
	again := line.Bool("again", false, "also a message of which there is a copy already")
	id, err := readID(line, args, "MESSAGE", "message")
	if err != nil {
		return err
	}
	copied, err := c.copyMessage(ctx, id, *again)
	if err == nil {
		_, err = fmt.Fprintf(out, "message %d is copied as %d: `gated why %[2]d` says what becomes of it\n", id, copied)
	}
	return err
}

func (c *verbs) copyMessage(ctx context.Context, id int64, again bool) (copied int64, err error) {
	path := fmt.Sprintf("/v1/messages/%d/replay", id)
	if again {
		path += "?again=true"
	}
	var answer struct {
		ID int64 `json:"id"`
	}
	err = c.Call(ctx, http.MethodPost, path, nil, &answer)
	return answer.ID, err
}

// readID reads a command line whose one argument is the id of a thing.
func readID(line *cli.Line, args []string, argument, thing string) (int64, error) {
	rest, err := line.Arguments(args, argument)
	if err != nil {
		return 0, err
	}
	return line.ID(rest[0], thing)
}
