package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"arizuko/pkg/cli"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// access prints what a sender may do in a chat, and why.
func (c *verbs) access(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("access CHAT SENDER [--name N] [--thread T]", out)
	name := line.String("name", "", "the sender's display name, for routes with sender_name")
	thread := line.String("thread", "", "the platform's thread")
	rest, err := line.Read(args, 2)
	if err != nil {
		return err
	}
	if len(rest) != 2 {
		return line.UsageError("want a chat and a sender, as in telegram:-1001234 telegram:42")
	}
	query := url.Values{"jid": {rest[0]}, "sender": {rest[1]}, "sender_name": {*name}, "thread_id": {*thread}}
	var answer routeapi.Access
	if err := c.Call(ctx, http.MethodGet, routeapi.AccessPath+"?"+query.Encode(), nil, &answer); err != nil {
		return err
	}
	return printAccess(&answer, out)
}

func printAccess(a *routeapi.Access, out io.Writer) error {
	sender := a.Sender + ", no operator"
	if a.Admin {
		sender += ", but an admin of the chat"
	}
	if a.Operator {
		sender = a.Sender + ", an operator: roles, rate, reach and pin of a group do not apply"
	}
	heading := []string{"chat", fmt.Sprintf("%s (%s)", a.ChatJID, a.Kind)}
	if a.Pinned != "" {
		heading[1] += ", pinned to " + a.Pinned
	}
	rows := [][]string{{"sender", sender}}
	for _, row := range a.Rows {
		text := outcome(&row.Answer, row.Admitted)
		if row.Answer.Action == routeapi.Trigger && row.Admitted {
			text += rateText(row.Rate)
		}
		rows = append(rows, []string{row.Verb, text + ": " + strings.Join(row.Answer.Trace, "; ")})
	}
	return cli.Table(out, heading, append(rows, homeRows(a.ChatJID, a.Home)...))
}

// homeRows are about the chat's group, nil for none.
func homeRows(chatJID string, h *routeapi.HomeAccess) [][]string {
	commands := func(names ...string) string {
		for i := range names {
			names[i] = msg.CommandIn(chatJID, names[i])
		}
		return strings.Join(names, ", ")
	}
	if h == nil {
		return [][]string{{"group", "none: commands of a group, pins and @name do nothing here"}}
	}
	group := [][]string{{"group", h.Folder}}
	if !h.Admitted {
		group[0][1] += ": the sender may do nothing here but " +
			commands(msg.CommandPing, msg.CommandChatID, msg.CommandHelp)
	}
	for _, role := range h.Roles.Lines(nil) {
		group = append(group, []string{"role " + role.Name, role.Who})
	}
	if !h.Admitted {
		return group
	}
	reaches, pins := "no other group", "may not pin the chat: only operators may"
	if len(h.Reaches) > 0 {
		reaches = strings.Join(h.Reaches, ", ")
	}
	if h.Pins {
		pins = "may pin the chat"
	}
	return append(group,
		[]string{"commands", commands(msg.CommandNew, msg.CommandStop, msg.CommandStatus, msg.CommandWho)},
		[]string{"@name", reaches}, []string{"pin", pins})
}

// outcome words the decision on a message.
func outcome(a *routeapi.Answer, admitted bool) string {
	switch {
	case !admitted:
		return fmt.Sprintf("is dropped (no_access), since the role ask of %s does not list the sender", a.Folder)
	case a.Action == routeapi.Trigger:
		return "starts a turn of " + a.Folder
	case a.Action == routeapi.Observe:
		return "is observed by " + a.Folder
	case a.Action == routeapi.Builtin, a.Action == routeapi.Daemon:
		return "goes to " + a.Target
	}
	return "starts nothing"
}

func rateText(rate int) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf(" (at most %d an hour)", rate)
}
