package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"arizuko/gated/internal/operators/api"
	"arizuko/pkg/cli"
)

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
