package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"arizuko/pkg/msg"
	"arizuko/pkg/resolve"
)

const routesPath = "/v1/routes"

func (c *cli) listRoutes(ctx context.Context, args []string, out io.Writer) error {
	if err := parseNone(flags("routes list", out), args); err != nil {
		return err
	}
	var answer struct{ Routes []msg.Route }
	if err := c.call(ctx, http.MethodGet, routesPath, nil, &answer); err != nil {
		return err
	}
	if len(answer.Routes) == 0 {
		_, err := fmt.Fprintln(out, "no routes: add one with `routd routes add --target FOLDER`")
		return err
	}
	rows := make([][]string, len(answer.Routes))
	for i, r := range answer.Routes {
		rows[i] = []string{
			strconv.FormatInt(r.ID, 10), strconv.FormatInt(r.Seq, 10), orEverything(r.Match), r.Target, orNone(string(r.Impulse)),
		}
	}
	return table(out, []string{"ID", "SEQ", "MATCH", "TARGET", "IMPULSE"}, rows)
}

func orEverything(match string) string {
	if match == "" {
		return "(everything)"
	}
	return match
}

func (c *cli) addRoute(ctx context.Context, args []string, out io.Writer) error {
	fs := flags("routes add [--seq N] [--match 'key=glob …'] --target TARGET [--impulse JSON]", out)
	var r msg.Route
	fs.Int64Var(&r.Seq, "seq", 0, "rows are asked in this order, then by id")
	fs.StringVar(&r.Match, "match", "", "what the row matches, everything by default, e.g. 'platform=telegram verb=mention'")
	fs.StringVar(&r.Target, "target", "", "folder, folder#observe, daemon:NAME, builtin:ping or builtin:drop")
	impulse := fs.String("impulse", "", `how long rows are held, e.g. '{"quiet_ms":3000}'`)
	if err := parseNone(fs, args); err != nil {
		return err
	}
	if r.Target == "" {
		return wrongUsage("--target is missing (usage: routd %s)", fs.Name())
	}
	var err error
	if r.Impulse, err = jsonFlag("impulse", *impulse); err != nil {
		return err
	}
	if err := c.call(ctx, http.MethodPost, routesPath, r, &r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "added route %d\n", r.ID)
	return err
}

func (c *cli) removeRoutes(ctx context.Context, args []string, out io.Writer) error {
	fs := flags("routes rm ID…", out)
	ids, err := parse(fs, args)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return wrongUsage("which route? (usage: routd %s)", fs.Name())
	}
	for _, id := range ids {
		if _, err := strconv.ParseInt(id, 10, 64); err != nil {
			return wrongUsage("%q is no route's id: see `routd routes list`", id)
		}
	}
	for _, id := range ids {
		if err := c.call(ctx, http.MethodDelete, routesPath+"/"+id, nil, nil); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "removed route %s\n", id); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) testRoutes(ctx context.Context, args []string, out io.Writer) error {
	fs := flags("routes test --chat JID [--verb V] [--sender S] [--sender-name N] [--kind K] [--thread T] [--sticky FOLDER]", out)
	var item resolve.Item
	fs.StringVar(&item.ChatJID, "chat", "", "address of the chat, e.g. telegram:-1001234")
	fs.StringVar(&item.Verb, "verb", "", "message (default), mention, reply, reaction, …")
	fs.StringVar(&item.Sender, "sender", "", "platform:user id")
	fs.StringVar(&item.SenderName, "sender-name", "", "display name")
	fs.StringVar((*string)(&item.Kind), "kind", "", "dm, group or channel; guessed from the address by default")
	fs.StringVar(&item.ThreadID, "thread", "", "the platform's thread")
	fs.StringVar(&item.StickyGroup, "sticky", "", "the group the chat is pinned to")
	if err := parseNone(fs, args); err != nil {
		return err
	}
	if item.ChatJID == "" {
		return wrongUsage("--chat is missing (usage: routd %s)", fs.Name())
	}
	var v verdict
	if err := c.call(ctx, http.MethodPost, routesPath+"/test", item, &v); err != nil {
		return err
	}
	return v.print(out)
}

// verdict is what routd would do with a message.
type verdict struct {
	Answer resolve.Answer
	Trace  []string
}

func (v *verdict) print(out io.Writer) error {
	a := v.Answer
	rows := [][]string{
		{"target", orNone(a.Target)},
		{"reason", string(a.Reason)},
		{"home", orNone(a.Home)},
		{"surface", fmt.Sprintf("%s, about %d characters", a.Surface, a.Ceiling)},
	}
	for i, line := range v.Trace {
		label := "why"
		if i > 0 {
			label = ""
		}
		rows = append(rows, []string{label, line})
	}
	return table(out, []string{"action", string(a.Action)}, rows)
}
