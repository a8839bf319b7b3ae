// Package cli has gated's subcommands that talk to the running gated.
package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"arizuko/gated/internal/timed/broadcasts"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/pkg/apierr"
	"arizuko/pkg/cli"
	"arizuko/pkg/httpx"
)

// localOperator is who acts at a terminal.
const localOperator = "local:operator"

// Commands returns the subcommands by name. connect makes the client of the running gated.
func Commands(connect func() (*httpx.Client, error)) map[string]cli.Func {
	c := &verbs{cli.Daemon{Name: "gated", Connect: connect}}
	return map[string]cli.Func{
		"broadcast": c.broadcast, "cancel": c.cancel, "lost": c.lost, "reminders": c.reminders, "replay": c.replay,
		"retry": c.retry, "spend": c.spend,
	}
}

type verbs struct{ cli.Daemon }

func (c *verbs) broadcast(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("broadcast (--folder FOLDER | --chats CHAT,…) [--key KEY] TEXT…", out)
	folder := line.String("folder", "", "to the chats of this group")
	chats := line.String("chats", "", "to these chats, as telegram:-1001234,slack:C0ABC")
	key := line.String("key", "", "of a broadcast that may have been sent before: it is sent once")
	rest, err := line.Read(args, cli.AnyNumber)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return line.UsageError("TEXT is missing")
	}
	if (*folder == "") == (*chats == "") {
		return line.UsageError("give --folder or --chats, one of them")
	}
	r := broadcasts.Request{Folder: *folder, Text: strings.Join(rest, " "), By: localOperator, Key: *key}
	if r.Key == "" {
		r.Key = rand.Text()
	}
	if *chats != "" {
		r.Chats = strings.Split(*chats, ",")
	}
	var sent broadcasts.Sent
	if err := c.Call(ctx, http.MethodPost, broadcasts.Path, r, &sent); err != nil {
		if apierr.KindOf(err) == apierr.Unavailable {
			return fmt.Errorf("%w; to try again without sending it twice, add --key %s", err, r.Key)
		}
		return err
	}
	for i, id := range sent.MessageIDs {
		fmt.Fprintf(out, "row %d to %s\n", id, cli.PrintableLine(sent.Chats[i]))
	}
	for _, chat := range sent.LeftOut {
		fmt.Fprintf(out, "none to %s, a forum: messages there are in posts\n", cli.PrintableLine(chat))
	}
	return nil
}

func (c *verbs) reminders(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("reminders [list [--folder FOLDER | --chat CHAT] [--state active | done | cancelled] | cancel ID]",
		out)
	folder := line.String("folder", "", "of this group")
	chat := line.String("chat", "", "of this chat")
	state := line.String("state", "active", "which reminders")
	rest, err := line.Read(args, 2)
	if err != nil {
		return err
	}
	switch {
	case len(rest) == 1 && rest[0] == "cancel":
		return line.UsageError("ID is missing")
	case len(rest) == 2 && rest[0] == "cancel":
		id, err := strconv.ParseInt(rest[1], 10, 64)
		if err != nil || id <= 0 {
			return line.UsageError("%q is not the id of a reminder", rest[1])
		}
		var cancelled reminders.Line
		if err := c.Call(ctx, http.MethodPost, fmt.Sprintf("%s/%d/cancel", reminders.Path, id),
			reminders.Cancel{By: localOperator}, &cancelled); err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "reminder %d is cancelled\n", id)
		return err
	case *folder != "" && *chat != "":
		return line.UsageError("give --folder or --chat, not both")
	case len(rest) == 0, len(rest) == 1 && rest[0] == "list":
		return c.listReminders(ctx, url.Values{"folder": {*folder}, "chat": {*chat}, "state": {*state}}, out)
	}
	return line.UsageError("unexpected argument %q", rest[len(rest)-1])
}

func (c *verbs) listReminders(ctx context.Context, query url.Values, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tNEXT\tREPEATS\tKIND\tFOLDER\tCHAT\tLAST ROW\tTEXT")
	for found := false; ; found = true {
		var answer struct{ Reminders []reminders.Line }
		if err := c.Call(ctx, http.MethodGet, reminders.Path+"?"+query.Encode(), nil, &answer); err != nil {
			return err
		}
		if len(answer.Reminders) == 0 {
			if !found {
				_, err := fmt.Fprintln(out, "no reminders")
				return err
			}
			return w.Flush()
		}
		for _, r := range answer.Reminders {
			query.Set("after", strconv.FormatInt(r.ID, 10))
			cells := []string{fmt.Sprint(r.ID), string(r.State), when(r.NextSlot), repeats(r), string(r.Kind), r.Folder,
				r.ChatJID, row(r.LastRow), excerpt(r.Body)}
			if r.Error != "" {
				cells[1] += " (" + r.Error + ")"
			}
			for i := range cells {
				cells[i] = cli.PrintableLine(cells[i])
			}
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
}

func when(at int64) string {
	if at == 0 {
		return "-"
	}
	return time.UnixMilli(at).Format(time.DateTime)
}

func repeats(r reminders.Line) string {
	if r.Cron == "" {
		return "once"
	}
	return r.Cron + " " + r.TimeZone
}

func row(id int64) string {
	if id == 0 {
		return "-"
	}
	return strconv.FormatInt(id, 10)
}

func excerpt(text string) string {
	const maxText = 60
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return text
}
