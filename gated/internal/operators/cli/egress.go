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
		lines = append(lines, []string{fmt.Sprint(r.ID), fmt.Sprint(r.Seq), cmp.Or(r.Folder, "(all)"),
			cmp.Or(r.Method, "(any)"), r.Host + r.Path, strings.TrimSpace(string(r.Action) + " " + r.Secret),
			r.Author, when(r.CreatedAt)})
	}
	return table(out, "no rules: users are asked about all",
		"ID,SEQ,GROUP,METHOD,HOST AND PATH,ACTION,AUTHOR,MADE", lines)
}

// readRule reads the rule that a command line describes.
func (c *verbs) readRule(verb string, args []string, out io.Writer) (*egress.Rule, error) {
	line := c.Line("egress rules "+verb+" --host HOST [--method METHOD] [--path PATH] [--folder FOLDER] "+
		"[--action pass | inject | ask | deny] [--secret NAME] [--seq N]", out)
	var r egress.Rule
	line.StringVar(&r.Host, "host", "", "api.github.com, *.github.com for all names below it, or *; with :PORT unless "+
		"it is 80 or 443")
	line.StringVar(&r.Method, "method", "", "as in POST; any by default")
	line.StringVar(&r.Path, "path", "", "what the path begins with, as in /repos/acme/; any by default")
	line.StringVar(&r.Folder, "folder", "", "for this group alone")
	line.StringVar((*string)(&r.Action), "action", string(egress.Ask), "what happens to the requests")
	line.StringVar(&r.Secret, "secret", "", "the secret that the action inject sends")
	line.Int64Var(&r.Seq, "seq", 0, "rules are tried in this order; it comes before the one that has N, and before "+
		"all others by default")
	if _, err := line.Read(args, 0); err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, line.UsageError("%w", err)
	}
	return &r, nil
}

func (c *verbs) addRule(ctx context.Context, args []string, out io.Writer) error {
	rule, err := c.readRule("add", args, out)
	if err != nil {
		return err
	}
	if err := c.Call(ctx, http.MethodPost, egressRules, rule, rule); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "added rule %d: %s\n", rule.ID, cli.PrintableLine(rule.String()))
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
	rule, err := c.readRule("test", args, out)
	if err != nil {
		return err
	}
	var result egress.Comparison
	if err := c.Call(ctx, http.MethodPost, "/v1/egress/test", rule, &result); err != nil {
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
