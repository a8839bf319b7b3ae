package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"arizuko/gated/internal/operators/api"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/cli"
	"arizuko/pkg/egress"
)

const egressRules = "/v1/egress/rules"

// egress runs the subcommand that the first arguments name.
func (c *verbs) egress(ctx context.Context, args []string, out io.Writer) error {
	rules := map[string]cli.Func{"list": c.listRules, "add": c.addRule, "rm": c.removeRules, "test": c.testRule}
	switch {
	case len(args) > 1 && args[0] == "rules" && rules[args[1]] != nil:
		return rules[args[1]](ctx, args[2:], out)
	case len(args) > 0 && args[0] == "log":
		return c.egressLog(ctx, args[1:], out)
	case slices.ContainsFunc(args, buildinfo.IsHelp):
		for _, command := range []cli.Func{c.listRules, c.addRule, c.removeRules, c.testRule, c.egressLog} {
			if err := command(ctx, []string{"--help"}, out); !errors.Is(err, flag.ErrHelp) {
				return err
			}
		}
		return flag.ErrHelp
	}
	return cli.UsageError("usage: gated egress rules list | add | rm | test, or gated egress log")
}

func (c *verbs) listRules(ctx context.Context, args []string, out io.Writer) error {
	if _, err := c.Line("egress rules list", out).Read(args, 0); err != nil {
		return err
	}
	var answer api.EgressRules
	if err := c.Call(ctx, http.MethodGet, egressRules, nil, &answer); err != nil {
		return err
	}
	var lines [][]string
	for _, r := range answer.Rules {
		lines = append(lines, []string{fmt.Sprint(r.ID), cmp.Or(r.Folder, "(all)"), cmp.Or(r.Method, "(any)"),
			r.Host + r.Path, strings.TrimSpace(string(r.Action) + " " + r.Secret), r.Author, when(r.CreatedAt)})
	}
	return table(out, "no rules: users are asked about all", "ID,GROUP,METHOD,HOST AND PATH,ACTION,AUTHOR,MADE", lines)
}

// readRule reads the rule that a command line describes.
func (c *verbs) readRule(verb string, args []string, out io.Writer) (*egress.Draft, error) {
	line := c.Line("egress rules "+verb+" --host HOST [--method METHOD] [--path PATH] [--folder FOLDER] "+
		"[--action pass | inject | ask | deny] [--secret NAME] [--before ID | --last]", out)
	var d egress.Draft
	line.StringVar(&d.Host, "host", "", "api.github.com, *.github.com for all names below it, or *; with :PORT unless "+
		"it is 80 or 443")
	line.StringVar(&d.Method, "method", "", "as in POST; any by default")
	line.StringVar(&d.Path, "path", "", "what the path begins with, as in /repos/acme/; any by default")
	line.StringVar(&d.Folder, "folder", "", "for this group alone")
	line.StringVar((*string)(&d.Action), "action", string(egress.Ask), "what happens to the requests")
	line.StringVar(&d.Secret, "secret", "", "the secret that the action inject sends")
	line.Int64Var(&d.Before, "before", 0, "the id of the rule that it comes directly before; by default it comes first")
	last := line.Bool("last", false, "it comes after all others")
	_, err := line.Read(args, 0)
	switch {
	case err != nil:
		return nil, err
	case d.Before < 0, *last && d.Before != 0:
		return nil, line.UsageError("give --before ID or --last, one of them")
	case *last:
		d.Before = egress.Last
	}
	if err := d.Check(); err != nil {
		return nil, line.UsageError("%w", err)
	}
	return &d, nil
}

func (c *verbs) addRule(ctx context.Context, args []string, out io.Writer) error {
	draft, err := c.readRule("add", args, out)
	if err != nil {
		return err
	}
	var answer api.EgressRules
	if err := c.Call(ctx, http.MethodPost, egressRules, draft, &answer); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "added rule %d: %s\n", answer.ID, cli.PrintableLine(draft.String()))
	return err
}

func (c *verbs) removeRules(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("egress rules rm ID…", out)
	rest, err := line.Arguments(args, "ID…")
	if err != nil {
		return err
	}
	ids := make([]int64, len(rest))
	for i, text := range rest {
		if ids[i], err = line.ID(text, "rule"); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := c.Call(ctx, http.MethodDelete, fmt.Sprintf("%s/%d", egressRules, id), nil, nil); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "removed rule %d\n", id); err != nil {
			return err
		}
	}
	return nil
}

func (c *verbs) testRule(ctx context.Context, args []string, out io.Writer) error {
	draft, err := c.readRule("test", args, out)
	if err != nil {
		return err
	}
	var result egress.Comparison
	if err := c.Call(ctx, http.MethodPost, "/v1/egress/test", draft, &result); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "of %d requests of the last week, %d would be decided otherwise\n", result.Requests,
		result.Changed); err != nil || result.Changed == 0 {
		return err
	}
	var lines [][]string
	for _, e := range result.Examples {
		lines = append(lines, []string{when(e.At), e.Folder, e.Was, e.Would, e.Request})
	}
	return table(out, "", "AT,GROUP,NOW,THEN,REQUEST", lines)
}

// egressLog lists what agents have sent, and wanted to send.
func (c *verbs) egressLog(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("egress log [--folder FOLDER] [--host HOST] [--state asked | sending | sent | refused | failed] "+
		"[--days N] [--limit N]", out)
	folder := line.String("folder", "", "of this group")
	host := line.String("host", "", "to this host")
	state := line.String("state", "", "in this state")
	days := line.Int("days", 7, "of so many days")
	limit := line.Int("limit", 200, "the newest ones, at most 1000")
	if _, err := line.Read(args, 0); err != nil {
		return err
	}
	query := url.Values{"folder": {*folder}, "host": {*host}, "state": {*state}, "days": {fmt.Sprint(*days)},
		"limit": {fmt.Sprint(*limit)}}
	var answer struct{ Receipts []*egress.Receipt }
	if err := c.Call(ctx, http.MethodGet, "/v1/egress/receipts?"+query.Encode(), nil, &answer); err != nil {
		return err
	}
	var lines [][]string
	for _, r := range answer.Receipts {
		lines = append(lines, []string{fmt.Sprint(r.ID), when(r.At), r.Folder, row(r.TurnID), r.String()})
	}
	return table(out, "no requests", "ID,AT,GROUP,TURN,REQUEST", lines)
}
