package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func (c *verbs) listHooks(ctx context.Context, args []string, out io.Writer) error {
	if _, err := c.Line("hooks list", out).Read(args, 0); err != nil {
		return err
	}
	var answer struct{ Groups []msg.Group }
	if err := c.Call(ctx, http.MethodGet, routeapi.GroupsPath, nil, &answer); err != nil {
		return err
	}
	var rows [][]string
	for _, g := range answer.Groups {
		settings, _ := groupconfig.Parse(g.Config) // `routd groups show` names mistakes
		for _, name := range slices.Sorted(maps.Keys(settings.Hooks)) {
			h := settings.Hooks[name]
			state := "on"
			if h.Off {
				state = "off"
			}
			rows = append(rows, []string{g.Folder, name, string(h.Kind), state, cmp.Or(h.To, "-"),
				strings.Join(h.Events, ","), g.Folder + "." + h.ID})
		}
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, "no hooks: add one with `routd hooks add FOLDER --kind github --name ci`")
		return err
	}
	return cli.Table(out, []string{"GROUP", "NAME", "KIND", "STATE", "TO", "EVENTS", "ID"}, rows)
}

func (c *verbs) addHook(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("hooks add FOLDER --kind KIND --name NAME [--to CHAT] [--events PATTERN,…] [--config JSON]", out)
	var n routeapi.NewHook
	kind := line.String("kind", "", fmt.Sprintf("who sends: %v", groupconfig.HookKinds()))
	line.StringVar(&n.Name, "name", "", "what you call it")
	to := line.String("to", "", "the chat where answers go, as in slack:C0ABC; else only the dashboard shows them")
	events := line.String("events", "", "which events start a turn, as in issues.opened,check_*; all by default")
	config := line.String("config", "", `its other settings, e.g. '{"only":{"check_run.conclusion":"failure"}}'`)
	given := line.Bool("secret-stdin", false, "read the secret from stdin, in place of a new one")
	folders, err := line.Arguments(args, "FOLDER")
	if err != nil {
		return err
	}
	if *config != "" {
		strict := json.NewDecoder(strings.NewReader(*config))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&n.Hook); err != nil {
			return line.UsageError("--config: %w", err)
		}
	}
	n.Folder, n.Hook.Kind, n.Hook.To = folders[0], groupconfig.HookKind(*kind), cmp.Or(*to, n.Hook.To)
	comma := func(c rune) bool { return c == ',' || c == ' ' }
	n.Hook.Events = append(n.Hook.Events, strings.FieldsFunc(*events, comma)...)
	if n.Secret, err = secretOf(*given); err != nil {
		return err
	}
	var added routeapi.HookAdded
	if err := c.Call(ctx, http.MethodPost, routeapi.HooksPath, n, &added); err != nil {
		return err
	}
	return printHook(out, added)
}

func printHook(out io.Writer, h routeapi.HookAdded) error {
	_, err := fmt.Fprintf(out, "id:     %s\nurl:    %s\n", h.ID, h.URL)
	if h.Secret != "" && err == nil {
		_, err = fmt.Fprintf(out, "secret: %s\n\nGive the sender both. The secret is shown only now; "+
			"`routd hooks rotate` makes another one.\n", h.Secret)
	}
	return err
}

// secretOf reads the secret from stdin if it is given there.
func secretOf(given bool) (string, error) {
	if !given {
		return "", nil
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, 64<<10))
	secret := strings.TrimSpace(string(text))
	if err == nil && secret == "" {
		err = cli.UsageError("no secret came on stdin")
	}
	return secret, err
}

func (c *verbs) removeHooks(ctx context.Context, args []string, out io.Writer) error {
	ids, err := c.Line("hooks remove ID…", out).Arguments(args, "ID…")
	if err != nil {
		return err
	}
	path := func(id string) string { return routeapi.HooksPath + "/" + url.PathEscape(id) }
	return c.remove(ctx, "hook", ids, path, out)
}

func (c *verbs) rotateHook(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("hooks rotate ID [--overlap DURATION] [--secret-stdin]", out)
	overlap := line.Duration("overlap", 24*time.Hour, "how long the former secret counts, too")
	given := line.Bool("secret-stdin", false, "read the secret from stdin, in place of a new one")
	ids, err := line.Arguments(args, "ID")
	if err != nil {
		return err
	}
	change := routeapi.HookChange{ID: ids[0], Overlap: int64(overlap.Seconds())}
	if change.Secret, err = secretOf(*given); err != nil {
		return err
	}
	var changed routeapi.HookAdded
	if err := c.Call(ctx, http.MethodPost, routeapi.HookSecret, change, &changed); err != nil {
		return err
	}
	if err := printHook(out, changed); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The former secret counts for %s more.\n", *overlap)
	return err
}

func (c *verbs) testHook(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("hooks test ID [--kind EVENT]", out)
	event := line.String("kind", "", "the kind of event, as in push; a wrong one names those there are")
	ids, err := line.Arguments(args, "ID")
	if err != nil {
		return err
	}
	var tested routeapi.HookTested
	err = c.Call(ctx, http.MethodPost, routeapi.HookTest, routeapi.HookChange{ID: ids[0], Event: *event}, &tested)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "dashd took the %s: %s as message %d; `gated why %[3]d` says what happened to it\n",
		cli.PrintableLine(tested.Event), cli.PrintableLine(tested.State), tested.ID)
	return err
}
