package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

const groupsPath = "/v1/groups"

func (c *verbs) listGroups(ctx context.Context, args []string, out io.Writer) error {
	if _, err := c.Line("groups list", out).Read(args, 0); err != nil {
		return err
	}
	var answer struct{ Groups []msg.Group }
	if err := c.Call(ctx, http.MethodGet, groupsPath, nil, &answer); err != nil {
		return err
	}
	if len(answer.Groups) == 0 {
		_, err := fmt.Fprintln(out, "no groups: add one with `routd groups add FOLDER`")
		return err
	}
	rows := make([][]string, len(answer.Groups))
	for i, g := range answer.Groups {
		rows[i] = []string{g.Folder, orNone(g.Name), time.UnixMilli(g.CreatedAt).Format(time.DateTime), string(g.Config)}
	}
	return table(out, []string{"FOLDER", "NAME", "CREATED", "CONFIG"}, rows)
}

func (c *verbs) addGroup(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("groups add FOLDER [--name NAME] [--config JSON] [--if-none]", out)
	ifNone := line.Bool("if-none", false, "only if no group is registered yet")
	name := line.String("name", "", "what users call it")
	config := line.String("config", "", `its settings, e.g. '{"agent":{"model":"m"}}'`)
	folder, err := c.oneFolder(line, args)
	if err != nil {
		return err
	}
	if *ifNone {
		var answer struct{ Groups []msg.Group }
		if err := c.Call(ctx, http.MethodGet, groupsPath, nil, &answer); err != nil || len(answer.Groups) > 0 {
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
	if err := c.Call(ctx, http.MethodPost, groupsPath, group, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "group %s is registered\n", folder)
	return err
}

// showGroup prints a group with its configuration, and the problems of that; only a row changed by
// SQL can have some.
func (c *verbs) showGroup(ctx context.Context, args []string, out io.Writer) error {
	folder, err := c.oneFolder(c.Line("groups show FOLDER", out), args)
	if err != nil {
		return err
	}
	g, err := c.group(ctx, folder)
	if err != nil {
		return err
	}
	var settings bytes.Buffer
	if err := json.Indent(&settings, g.Config, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "folder:  %s\nname:    %s\ncreated: %s\nconfig:  %s\n", cli.PrintableLine(g.Folder),
		cli.PrintableLine(orNone(g.Name)), time.UnixMilli(g.CreatedAt).Format(time.DateTime), cli.Printable(settings.String()))
	var problems groupconfig.Problems
	if _, bad := groupconfig.Parse(g.Config); errors.As(bad, &problems) {
		for _, p := range problems {
			_, err = fmt.Fprintf(out, "problem: %s\n", cli.PrintableLine(p))
		}
	}
	return err
}

// setGroup changes what its flags name and keeps the rest.
func (c *verbs) setGroup(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("groups set FOLDER [--name NAME] [--config JSON]", out)
	name := line.String("name", "", "what users call it")
	config := line.String("config", "", "its settings, all of them: they replace those it has")
	folder, err := c.oneFolder(line, args)
	if err != nil {
		return err
	}
	settings, err := jsonFlag("config", *config)
	if err != nil {
		return err
	}
	g, err := c.group(ctx, folder)
	if err != nil {
		return err
	}
	line.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "name":
			g.Name = *name
		case "config":
			g.Config = settings
		}
	})
	if err := c.Call(ctx, http.MethodPut, groupPath(folder), map[string]any{"name": g.Name, "config": g.Config}, nil); err != nil {
		return err
	}
	if _, err = fmt.Fprintf(out, "group %s is changed; its next runs go by that\n", cli.PrintableLine(folder)); err != nil {
		return err
	}
	return c.warn(ctx, out, func(w routecheck.Warning) bool { return w.Folder == folder })
}

func (c *verbs) oneFolder(line *cli.Line, args []string) (string, error) {
	folders, err := line.Read(args, cli.AnyNumber)
	if err != nil {
		return "", err
	}
	if len(folders) != 1 {
		return "", line.UsageError("want one folder")
	}
	return folders[0], nil
}

func (c *verbs) group(ctx context.Context, folder string) (g msg.Group, err error) {
	return g, c.Call(ctx, http.MethodGet, groupPath(folder), nil, &g)
}

func groupPath(folder string) string { return groupsPath + "/" + url.PathEscape(folder) }

func (c *verbs) removeGroups(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("groups rm FOLDER…", out)
	folders, err := line.Read(args, cli.AnyNumber)
	if err != nil {
		return err
	}
	if len(folders) == 0 {
		return line.UsageError("which group?")
	}
	for _, folder := range folders {
		if err := c.Call(ctx, http.MethodDelete, groupPath(folder), nil, nil); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "removed group %s\n", cli.PrintableLine(folder)); err != nil {
			return err
		}
	}
	return nil
}
