package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"arizuko/pkg/msg"
)

const groupsPath = "/v1/groups"

func (c *cli) listGroups(ctx context.Context, args []string, out io.Writer) error {
	if err := parseNone(flags("groups list", out), args); err != nil {
		return err
	}
	var answer struct{ Groups []msg.Group }
	if err := c.call(ctx, http.MethodGet, groupsPath, nil, &answer); err != nil {
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

func (c *cli) addGroup(ctx context.Context, args []string, out io.Writer) error {
	fs := flags("groups add FOLDER [--name NAME] [--config JSON]", out)
	name := fs.String("name", "", "what people call it")
	config := fs.String("config", "", `its settings, e.g. '{"assistant_name":"Eng"}'`)
	folders, err := parse(fs, args)
	if err != nil {
		return err
	}
	if len(folders) != 1 {
		return wrongUsage("want one folder (usage: routd %s)", fs.Name())
	}
	// Not msg.Group: its created_at is not ours to send.
	group := map[string]any{"folder": folders[0], "name": *name}
	settings, err := jsonFlag("config", *config)
	if err != nil {
		return err
	}
	if settings != nil {
		group["config"] = settings
	}
	if err := c.call(ctx, http.MethodPost, groupsPath, group, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "group %s is registered\n", folders[0])
	return err
}

func (c *cli) removeGroups(ctx context.Context, args []string, out io.Writer) error {
	fs := flags("groups rm FOLDER…", out)
	folders, err := parse(fs, args)
	if err != nil {
		return err
	}
	if len(folders) == 0 {
		return wrongUsage("which group? (usage: routd %s)", fs.Name())
	}
	for _, folder := range folders {
		if err := c.call(ctx, http.MethodDelete, groupsPath+"/"+url.PathEscape(folder), nil, nil); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "removed group %s\n", printable(folder)); err != nil {
			return err
		}
	}
	return nil
}
