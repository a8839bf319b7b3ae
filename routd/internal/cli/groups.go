package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/routecheck"
)

func (c *verbs) listGroups(ctx context.Context, args []string, out io.Writer) error {
	if _, err := c.Line("groups list", out).Read(args, 0); err != nil {
		return err
	}
	var answer struct{ Groups []msg.Group }
	if err := c.Call(ctx, http.MethodGet, routeapi.GroupsPath, nil, &answer); err != nil {
		return err
	}
	if len(answer.Groups) == 0 {
		_, err := fmt.Fprintln(out, "no groups: add one with `routd groups add FOLDER`")
		return err
	}
	rows := make([][]string, len(answer.Groups))
	for i, g := range answer.Groups {
		rows[i] = []string{g.Folder, cmp.Or(g.Name, "-"), time.UnixMilli(g.CreatedAt).Format(time.DateTime),
			string(g.Config)}
	}
	return cli.Table(out, []string{"FOLDER", "NAME", "CREATED", "CONFIG"}, rows)
}

func (c *verbs) addGroup(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("groups add FOLDER [--name NAME] [--config JSON] [--if-none]", out)
	ifNone := line.Bool("if-none", false, "only if no group is registered yet")
	name := line.String("name", "", "what users call it")
	config := line.String("config", "", `its settings, e.g. '{"agent":{"model":"m"}}'`)
	folders, err := line.Arguments(args, "FOLDER")
	if err != nil {
		return err
	}
	folder := folders[0]
	if *ifNone {
		var answer struct{ Groups []msg.Group }
		if err := c.Call(ctx, http.MethodGet, routeapi.GroupsPath, nil, &answer); err != nil || len(answer.Groups) > 0 {
			return err
		}
	}
	// Not msg.Group: clients do not set created_at.
	group := map[string]any{"folder": folder, "name": *name}
	settings, err := jsonFlag("config", *config)
	if err != nil {
		return err
	}
	if settings != nil {
		group["config"] = settings
	}
	if err := c.Call(ctx, http.MethodPost, routeapi.GroupsPath, group, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "group %s is registered\n", folder)
	return err
}

// showGroup prints a group with its configuration, and the problems of that; only a row changed by
// SQL can have some.
func (c *verbs) showGroup(ctx context.Context, args []string, out io.Writer) error {
	folders, err := c.Line("groups show FOLDER", out).Arguments(args, "FOLDER")
	if err != nil {
		return err
	}
	g, err := c.group(ctx, folders[0])
	if err != nil {
		return err
	}
	var settings bytes.Buffer
	if err := json.Indent(&settings, g.Config, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "folder:  %s\nname:    %s\ncreated: %s\nconfig:  %s\n", cli.PrintableLine(g.Folder),
		cli.PrintableLine(cmp.Or(g.Name, "-")), time.UnixMilli(g.CreatedAt).Format(time.DateTime),
		cli.Printable(settings.String()))
	var problems groupconfig.Problems
	if _, bad := groupconfig.Parse(g.Config); errors.As(bad, &problems) {
		for _, p := range problems {
			_, err = fmt.Fprintf(out, "problem: %s\n", cli.PrintableLine(p))
		}
	}
	return err
}

// setGroup changes the settings its flags name and keeps the rest.
func (c *verbs) setGroup(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("groups set FOLDER [--name NAME] [--agent NAME] [--model ID] [--config JSON]", out)
	name := line.String("name", "", "what users call it")
	config := line.String("config", "", "its settings, all of them: they replace those it has")
	agent := line.String("agent", "",
		"which agent of AGENTS answers in it, or default; without --model that chooses the model itself")
	model := line.String("model", "", "the model that its agent uses, or default, which leaves it to the agent")
	folders, err := line.Arguments(args, "FOLDER")
	if err != nil {
		return err
	}
	folder := folders[0]
	settings, err := jsonFlag("config", *config)
	if err != nil {
		return err
	}
	choice, set := map[string]any{}, map[string]bool{}
	line.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if set["agent"] {
		choice["name"], choice["model"] = orDefault(*agent), nil
	}
	if set["model"] {
		choice["model"] = orDefault(*model)
	}
	change, method := map[string]any{}, http.MethodPatch
	switch {
	case set["config"] && len(choice) > 0:
		return line.UsageError("--config replaces the agent and model: set them in it")
	case set["config"]:
		g, err := c.group(ctx, folder)
		if err != nil {
			return err
		}
		method, change["name"], change["config"] = http.MethodPut, g.Name, settings
	case len(choice) > 0:
		change["config"] = map[string]any{"agent": choice}
	}
	if set["name"] {
		change["name"] = *name
	}
	if err := c.Call(ctx, method, routeapi.GroupPath(folder), change, nil); err != nil {
		return err
	}
	if _, err = fmt.Fprintf(out, "group %s is changed; its next runs go by that\n",
		cli.PrintableLine(folder)); err != nil {
		return err
	}
	return c.warn(ctx, out, func(w routecheck.Warning) bool { return w.Folder == folder })
}

// orDefault is a choice as a group's config has it: null for the default one.
func orDefault(choice string) any {
	if choice == "" || choice == groupconfig.DefaultAgent {
		return nil
	}
	return choice
}

func (c *verbs) group(ctx context.Context, folder string) (g msg.Group, err error) {
	return g, c.Call(ctx, http.MethodGet, routeapi.GroupPath(folder), nil, &g)
}

func (c *verbs) removeGroups(ctx context.Context, args []string, out io.Writer) error {
	folders, err := c.Line("groups rm FOLDER…", out).Arguments(args, "FOLDER…")
	if err != nil {
		return err
	}
	return c.remove(ctx, "group", folders, routeapi.GroupPath, out)
}
