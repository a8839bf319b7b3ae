// Package cli has onbod's subcommands for operators at a terminal. They talk to the running onbod.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"arizuko/onbod/internal/onboarding"
	"arizuko/pkg/cli"
	"arizuko/pkg/httpx"
)

// Commands returns the subcommands by name. connect makes the client of the running onbod.
func Commands(connect func() (*httpx.Client, error)) map[string]cli.Func {
	c := &verbs{cli.Daemon{Name: "onbod", Connect: connect}}
	return map[string]cli.Func{"requests": c.requests, "approve": c.approve, "reject": c.reject, "reopen": c.reopen}
}

type verbs struct{ cli.Daemon }

func (c *verbs) requests(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("requests [--state pending | approved | rejected | expired | all]", out)
	state := line.String("state", "pending", "which requests")
	if _, err := line.Read(args, 0); err != nil {
		return err
	}
	if *state == "all" {
		*state = ""
	}
	var answer struct {
		Requests []struct {
			Code, State, Title, Sample, Folder string
			ChatJID                            string `json:"chat_jid"`
			Sender                             string
			SenderName                         string `json:"sender_name"`
			CreatedAt                          int64  `json:"created_at"`
		}
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/requests?"+url.Values{"state": {*state}}.Encode(), nil,
		&answer); err != nil {
		return err
	}
	if len(answer.Requests) == 0 {
		_, err := fmt.Fprintln(out, "no requests")
		return err
	}
	var rows [][]string
	for _, r := range answer.Requests {
		cells := []string{r.Code, r.State, time.UnixMilli(r.CreatedAt).Format(time.DateTime), r.ChatJID, r.Title,
			r.Sender, r.SenderName, r.Folder, r.Sample}
		for i := range cells {
			cells[i] = cell(cells[i])
		}
		rows = append(rows, cells)
	}
	return cli.Table(out,
		[]string{"CODE", "STATE", "CREATED", "CHAT", "TITLE", "SENDER", "NAME", "FOLDER", "TEXT"}, rows)
}

// maxCell is how much of a stranger's text a cell shows, in characters: one long title must not make the
// table unreadable. The dashboard shows all of it.
const maxCell = 40

func cell(text string) string {
	if runes := []rune(text); len(runes) > maxCell {
		return string(runes[:maxCell-1]) + "…"
	}
	return cmp.Or(text, "-")
}

func (c *verbs) approve(ctx context.Context, args []string, out io.Writer) error {
	rest, err := c.Line("approve CODE [FOLDER]", out).Arguments(args, "CODE", "[FOLDER]")
	if err != nil {
		return err
	}
	a := onboarding.Approval{Code: rest[0], By: onboarding.LocalOperator}
	if len(rest) == 2 {
		a.Folder = rest[1]
	}
	return c.decide(ctx, "/approve", a, out)
}

func (c *verbs) reject(ctx context.Context, args []string, out io.Writer) error {
	rest, err := c.Line("reject CODE [REASON…]", out).Arguments(args, "CODE", "[REASON…]")
	if err != nil {
		return err
	}
	return c.decide(ctx, "/reject", onboarding.Rejection{Code: rest[0], Reason: strings.Join(rest[1:], " "),
		By: onboarding.LocalOperator}, out)
}

func (c *verbs) reopen(ctx context.Context, args []string, out io.Writer) error {
	rest, err := c.Line("reopen CODE", out).Arguments(args, "CODE")
	if err != nil {
		return err
	}
	return c.decide(ctx, "/reopen", onboarding.Reopening{Code: rest[0], By: onboarding.LocalOperator}, out)
}

func (c *verbs) decide(ctx context.Context, path string, in any, out io.Writer) error {
	var d onboarding.Decided
	if err := c.Call(ctx, http.MethodPost, path, in, &d); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, cli.Printable(strings.ReplaceAll(d.Text, "`", "")))
	return err
}
