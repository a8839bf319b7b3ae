package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"arizuko/pkg/cli"
	"arizuko/pkg/routeapi"
	"arizuko/routd/internal/routing"
)

// resolve is "routd resolve": it answers questions about rows that were decided before, one in a line of JSON, by the
// stored routes and groups. It reads the database itself, so that routd need not run, and changes nothing: `gated
// redecide` asks it.
func resolve(in io.Reader) cli.Func {
	return func(ctx context.Context, args []string, out io.Writer) error {
		if _, err := (cli.Daemon{Name: "routd"}).Line("resolve < QUESTIONS", out).Read(args, 0); err != nil {
			return err
		}
		cfg, err := loadConfig()
		if err != nil {
			return err
		}
		table, err := readTable(ctx, cfg)
		if err != nil {
			return err
		}
		questions, answers := json.NewDecoder(in), json.NewEncoder(out)
		for ctx.Err() == nil {
			var q routeapi.Replay
			if err := questions.Decode(&q); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return cli.UsageError("a question is not JSON: %w", err)
			}
			response := routeapi.Response{Items: make([]routeapi.Answer, 0, len(q.Items))}
			for i := range q.Items {
				engaged := wasEngaged{folder: q.Engaged[q.Items[i].ID]}
				response.Items = append(response.Items, table.Resolve(ctx, &q.Items[i], engaged))
			}
			if err := answers.Encode(response); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
}

// wasEngaged is the engagement in the place of one item, as it was.
type wasEngaged struct {
	routing.Unengaged
	folder string
}

func (e wasEngaged) Engaged(context.Context, string, string, int64) string { return e.folder }
