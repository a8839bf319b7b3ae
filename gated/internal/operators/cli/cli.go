// Package cli has gated's subcommands that talk to the running gated.
package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"arizuko/gated/internal/operators/api"
	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/timed/broadcasts"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/pkg/apierr"
	"arizuko/pkg/cli"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// localOperator is who acts at a terminal.
const localOperator = "local:operator"

// Commands returns the subcommands by name. connect makes the client of the running gated.
func Commands(connect func() (*httpx.Client, error)) map[string]cli.Func {
	c := &verbs{cli.Daemon{Name: "gated", Connect: connect}}
	return map[string]cli.Func{
		"broadcast": c.broadcast, "cancel": c.changeTurn("cancel"), "egress": c.egress, "lost": c.lost,
		"reminders": c.reminders,
		"replay":    c.replay, "retry": c.changeTurn("retry"), "spend": c.spend,
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
		fmt.Fprintf(out, "message %d to %s\n", id, cli.PrintableLine(sent.Chats[i]))
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

// lost lists answers that were not delivered, or sends copies of some.
func (c *verbs) lost(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("lost [--chat CHAT] [--since DURATION] | lost resend [--again] MESSAGE…", out)
	chat := line.String("chat", "", "of this chat")
	since := line.String("since", "168h", "queued within this time")
	again := line.Bool("again", false, "also those that were already sent again")
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
	again := line.Bool("again", false, "also a message that was already copied")
	id, err := readID(line, args, "MESSAGE", "message")
	if err != nil {
		return err
	}
	copied, err := c.copyMessage(ctx, id, *again)
	if err == nil {
		_, err = fmt.Fprintf(out, "message %d is copied as %d: `gated why %[2]d` follows it\n", id, copied)
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

// spend prints the usage of agents.
func (c *verbs) spend(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("spend [--by day | group | chat] [--from DAY] [--to DAY] [--folder FOLDER] [--json]", out)
	by := line.String("by", "day", "a line for each day, group or chat")
	from := line.String("from", "", "the first day, as 2026-11-01; by default there are 30 days up to today")
	to := line.String("to", "", "the last day")
	folder := line.String("folder", "", "of this group")
	asJSON := line.Bool("json", false, "print it as JSON")
	if _, err := line.Read(args, 0); err != nil {
		return err
	}
	switch {
	case *by != "day" && *by != "group" && *by != "chat":
		return line.UsageError("--by %s is none of day, group, chat", *by)
	case *by == "group" && *folder != "":
		return line.UsageError("--folder is for --by day and --by chat")
	}
	var used api.Spend
	query := url.Values{"by": {*by}, "from": {*from}, "to": {*to}, "folder": {*folder}}
	if err := c.Call(ctx, http.MethodGet, "/v1/spend?"+query.Encode(), nil, &used); err != nil {
		return err
	}
	if *asJSON {
		text, err := json.MarshalIndent(used, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
		return err
	}
	var lines [][]string
	used.Total.Name = "total"
	for _, l := range append(used.Lines, used.Total) {
		lines = append(lines, []string{l.Name, fmt.Sprint(l.Turns), fmt.Sprint(l.Input), fmt.Sprint(l.Output),
			fmt.Sprintf("%.4f", l.CostUSD)})
	}
	if len(used.Lines) == 0 {
		_, err := fmt.Fprintf(out, "no agent has reported what it used from %s to %s\n", used.From, used.To)
		return err
	}
	return cli.Table(out, []string{strings.ToUpper(used.By), "TURNS", "TOKENS READ", "TOKENS WRITTEN", "US DOLLARS"},
		lines)
}
