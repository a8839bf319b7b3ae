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
		"broadcast": c.broadcast, "cancel": c.changeTurn("cancel"), "lost": c.lost, "reminders": c.reminders,
		"replay": c.replay, "retry": c.changeTurn("retry"), "spend": c.spend,
	}
}

type verbs struct{ cli.Daemon }

func (c *verbs) broadcast(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("broadcast (--folder FOLDER | --chats CHAT,…) [--key KEY] TEXT…", out)
	folder := line.String("folder", "", "to the chats of this group")
	chats := line.String("chats", "", "to these chats, as telegram:-1001234,slack:C0ABC")
	key := line.String("key", "", "of a broadcast that may have been sent before: it is sent once")
	rest, err := line.Arguments(args, "TEXT…")
	if err != nil {
		return err
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
	switch {
	case err != nil:
		return err
	case len(rest) == 1 && rest[0] == "cancel":
		return line.UsageError("ID is missing")
	case len(rest) == 2 && rest[0] == "cancel":
		id, err := line.ID(rest[1], "reminder")
		if err != nil {
			return err
		}
		if err := c.Call(ctx, http.MethodPost, fmt.Sprintf("%s/%d/cancel", reminders.Path, id),
			reminders.Cancel{By: localOperator}, nil); err != nil {
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
	var lines [][]string
	for {
		var answer struct{ Reminders []reminders.Line }
		if err := c.Call(ctx, http.MethodGet, reminders.Path+"?"+query.Encode(), nil, &answer); err != nil {
			return err
		}
		if len(answer.Reminders) == 0 {
			return table(out, "no reminders", "ID,STATE,NEXT,REPEATS,KIND,FOLDER,CHAT,LAST ROW,TEXT", lines)
		}
		for _, r := range answer.Reminders {
			state, repeats := string(r.State), "once"
			if r.Error != "" {
				state += " (" + r.Error + ")"
			}
			if r.Cron != "" {
				repeats = r.Cron + " " + r.TimeZone
			}
			lines = append(lines, []string{fmt.Sprint(r.ID), state, when(r.NextSlot), repeats, string(r.Kind),
				r.Folder, r.ChatJID, row(r.LastRow), excerpt(r.Body)})
		}
		query.Set("after", strconv.FormatInt(answer.Reminders[len(answer.Reminders)-1].ID, 10))
	}
}

// table prints lines below headings, or a text if there are none.
func table(out io.Writer, none, headings string, lines [][]string) error {
	if len(lines) == 0 {
		_, err := fmt.Fprintln(out, none)
		return err
	}
	return cli.Table(out, strings.Split(headings, ","), lines)
}

func when(at int64) string {
	if at == 0 {
		return "-"
	}
	return time.UnixMilli(at).Format(time.DateTime)
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
