package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/cli"
)

// lost lists answers that were not delivered, or sends copies of some.
func (c *verbs) lost(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("lost [--chat CHAT] [--since DURATION] | lost resend [--again] MESSAGE…", out)
	chat := line.String("chat", "", "of this chat")
	since := line.String("since", "168h", "queued within this time")
	again := line.Bool("again", false, "also those of which a copy was sent already")
	rest, err := line.Read(args, cli.AnyNumber)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		return c.listLost(ctx, url.Values{"chat": {*chat}, "since": {*since}}, out)
	case rest[0] != "resend":
		return line.UsageError("unexpected argument %q", rest[0])
	case len(rest) == 1:
		return line.UsageError("MESSAGE is missing")
	}
	ids := make([]int64, len(rest)-1)
	for i, text := range rest[1:] {
		if ids[i], err = line.ID(text, "message"); err != nil {
			return err
		}
	}
	for _, id := range ids {
		copied, err := c.copyMessage(ctx, id, *again)
		if err != nil {
			return fmt.Errorf("message %d: %w", id, err)
		}
		fmt.Fprintf(out, "message %d is sent again as %d\n", id, copied)
	}
	return nil
}

func (c *verbs) listLost(ctx context.Context, query url.Values, out io.Writer) error {
	var answer struct{ Messages []rows.Lost }
	if err := c.Call(ctx, http.MethodGet, "/v1/messages/lost?"+query.Encode(), nil, &answer); err != nil {
		return err
	}
	var lines [][]string
	for i := range answer.Messages {
		l := &answer.Messages[i]
		lines = append(lines, []string{fmt.Sprint(l.ID), string(l.State), string(l.Class), when(l.EndedAt),
			fmt.Sprintf("%d of %d", l.Sent, l.Parts), l.ChatJID, l.ThreadID, row(l.NoticeID), row(l.CopyID), l.Error,
			excerpt(l.Content)})
	}
	return table(out, "no lost messages", "ID,STATE,CLASS,ENDED,SENT,CHAT,THREAD,NOTICE,COPY,ERROR,TEXT", lines)
}
