package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"arizuko/pkg/cli"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
)

func (c *verbs) listRoutes(ctx context.Context, args []string, out io.Writer) error {
	if _, err := c.Line("routes list", out).Read(args, 0); err != nil {
		return err
	}
	var answer struct{ Routes []msg.Route }
	if err := c.Call(ctx, http.MethodGet, routeapi.RoutesPath, nil, &answer); err != nil {
		return err
	}
	if len(answer.Routes) == 0 {
		_, err := fmt.Fprintln(out, "no routes: add one with `routd routes add --target FOLDER`")
		return err
	}
	rows := make([][]string, len(answer.Routes))
	for i, r := range answer.Routes {
		rows[i] = []string{
			strconv.FormatInt(r.ID, 10), strconv.FormatInt(r.Seq, 10), cmp.Or(r.Match, "(everything)"), r.Target,
			cmp.Or(string(r.Impulse), "-"),
		}
	}
	return cli.Table(out, []string{"ID", "SEQ", "MATCH", "TARGET", "IMPULSE"}, rows)
}

func (c *verbs) addRoute(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("routes add [--seq N] [--match 'key=glob …'] --target TARGET [--impulse JSON]", out)
	var r msg.Route
	line.Int64Var(&r.Seq, "seq", 0, "rows are tried in this order, then by id")
	line.StringVar(&r.Match, "match", "",
		"what the row matches, everything by default, e.g. 'platform=telegram verb=mention'")
	line.StringVar(&r.Target, "target", "", "folder, folder#observe, daemon:NAME, builtin:ping or builtin:drop")
	impulse := line.String("impulse", "", `how long rows are held, e.g. '{"quiet_ms":3000}'`)
	if _, err := line.Read(args, 0); err != nil {
		return err
	}
	if r.Target == "" {
		return line.UsageError("--target is missing")
	}
	var err error
	if r.Impulse, err = jsonFlag("impulse", *impulse); err != nil {
		return err
	}
	if err := c.Call(ctx, http.MethodPost, routeapi.RoutesPath, r, &r); err != nil {
		return err
	}
	if _, err = fmt.Fprintf(out, "added route %d\n", r.ID); err != nil {
		return err
	}
	return c.warn(ctx, out, func(w routecheck.Warning) bool { return w.Route == r.ID })
}

// warn prints warnings about the change just made: mostly that strangers are let in.
func (c *verbs) warn(ctx context.Context, out io.Writer, about func(routecheck.Warning) bool) error {
	var table struct {
		Routes []msg.Route
		Groups []msg.Group
	}
	for _, path := range []string{routeapi.RoutesPath, routeapi.GroupsPath} {
		if err := c.Call(ctx, http.MethodGet, path, nil, &table); err != nil {
			return err
		}
	}
	for _, w := range routecheck.Warnings(table.Routes, table.Groups) {
		if !about(w) {
			continue
		}
		if _, err := fmt.Fprintf(out, "warning: %s\n", cli.PrintableLine(w.Text)); err != nil {
			return err
		}
	}
	return nil
}

func (c *verbs) removeRoutes(ctx context.Context, args []string, out io.Writer) error {
	ids, err := c.Line("routes rm ID…", out).Arguments(args, "ID…")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := strconv.ParseInt(id, 10, 64); err != nil {
			return cli.UsageError("%q is not a route id: see `routd routes list`", id)
		}
	}
	return c.remove(ctx, "route", ids, func(id string) string { return routeapi.RoutesPath + "/" + id }, out)
}

func (c *verbs) testRoutes(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("routes test --chat JID [--verb V] [--sender S] [--sender-name N] [--kind K] [--thread T] "+
		"[--sticky FOLDER]", out)
	var item routeapi.Item
	line.StringVar(&item.ChatJID, "chat", "", "address of the chat, e.g. telegram:-1001234")
	line.StringVar(&item.Verb, "verb", "", "message (default), mention, reply, reaction, …")
	line.StringVar(&item.Sender, "sender", "", "platform:user id")
	line.StringVar(&item.SenderName, "sender-name", "", "display name")
	line.StringVar((*string)(&item.Kind), "kind", "", "dm, group or channel; guessed from the address by default")
	line.StringVar(&item.ThreadID, "thread", "", "the platform's thread")
	line.StringVar(&item.StickyGroup, "sticky", "", "the group the chat is pinned to")
	if _, err := line.Read(args, 0); err != nil {
		return err
	}
	if item.ChatJID == "" {
		return line.UsageError("--chat is missing")
	}
	var result testResult
	if err := c.Call(ctx, http.MethodPost, routeapi.TestPath, item, &result); err != nil {
		return err
	}
	return result.print(out)
}

// testResult is the decision on a tested message.
type testResult struct {
	Answer   routeapi.Answer
	Trace    []string
	Warnings []string
}

func (r *testResult) print(out io.Writer) error {
	a := r.Answer
	rows := [][]string{
		{"target", cmp.Or(a.Target, "-")},
		{"reason", string(a.Reason)},
		{"home", cmp.Or(a.Home, "-")},
		{"surface", fmt.Sprintf("%s, about %d characters", a.Surface, a.Ceiling)},
	}
	for _, part := range []struct {
		label string
		lines []string
	}{{"why", r.Trace}, {"warnings", r.Warnings}} {
		for i, line := range part.lines {
			label := part.label
			if i > 0 {
				label = ""
			}
			rows = append(rows, []string{label, line})
		}
	}
	return cli.Table(out, []string{"action", string(a.Action)}, rows)
}
