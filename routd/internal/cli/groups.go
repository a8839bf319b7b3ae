package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"arizuko/pkg/daemon/command"
	"arizuko/pkg/msg"
)

const groupsPath = "/v1/groups"

func (c *cli) listGroups(ctx context.Context, args []string, out io.Writer) error {
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

func (c *cli) addGroup(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("groups add FOLDER [--name NAME] [--config JSON]", out)
	name := line.String("name", "", "what people call it")
	config := line.String("config", "", `its settings, e.g. '{"assistant_name":"Eng"}'`)
	folders, err := line.Read(args, command.Many)
	if err != nil {
		return err
	}
	if len(folders) != 1 {
		return line.Mistake("want one folder")
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
	if err := c.Call(ctx, http.MethodPost, groupsPath, group, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "group %s is registered\n", folders[0])
	return err
}

func (c *cli) removeGroups(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("groups rm FOLDER…", out)
	folders, err := line.Read(args, command.Many)
	if err != nil {
		return err
	}
	if len(folders) == 0 {
		return line.Mistake("which group?")
	}
	for _, folder := range folders {
		if err := c.Call(ctx, http.MethodDelete, groupsPath+"/"+url.PathEscape(folder), nil, nil); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "removed group %s\n", command.PrintableLine(folder)); err != nil {
			return err
		}
	}
	return nil
}
