package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"time"

	"arizuko/migrations"
	"arizuko/migrations/backup"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/cli"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

// commands are the subcommands: those that ask the running dashd, and those that need none.
func commands() map[string]cli.Func {
	all := backup.Program{
		Place: place,
		Process: backup.Process{Version: buildinfo.Version(), Schema: migrations.Latest(), In: os.Stdin,
			Log: os.Stderr, Now: time.Now},
	}.Commands()
	maps.Copy(all, asking(connect))
	all["doctor"] = examine
	return all
}

// connect makes a client of the running dashd.
func connect() (*httpx.Client, error) {
	cfg, err := loadConfig()
	if err != nil {
		return nil, err
	}
	return daemon.ClientOf(cfg.Base, name, cfg.URL)
}

// asking are the subcommands that ask the running dashd. connect makes its client.
func asking(connect func() (*httpx.Client, error)) map[string]cli.Func {
	c := verbs{cli.Daemon{Name: name, Connect: connect}}
	return map[string]cli.Func{"status": c.status, "login": c.login}
}

type verbs struct{ cli.Daemon }

// status prints the state of the instance, or of one chat.
func (c verbs) status(ctx context.Context, args []string, out io.Writer) error {
	line := c.Line("status [CHAT_JID] [--thread ID] [--topic TOPIC] [--json]", out)
	thread := line.String("thread", "", "a thread of the chat")
	topic := line.String("topic", "", "a tab of a web chat, e.g. '#deploy'")
	asJSON := line.Bool("json", false, "print all of it as JSON")
	chats, err := line.Read(args, 1)
	if err != nil {
		return err
	}
	query := url.Values{}
	for _, chat := range chats {
		query = url.Values{"chat_jid": {chat}, "thread_id": {*thread}, "topic": {*topic}}
	}
	var raw httpx.Raw
	if err := c.Call(ctx, http.MethodGet, "/status?"+query.Encode(), nil, &raw); err != nil {
		return err
	}
	var report struct{ Text, Advice string }
	if err := json.Unmarshal(raw, &report); err != nil {
		return fmt.Errorf("invalid answer of dashd: %w", err)
	}
	text := cli.Printable(report.Text) + "\n"
	if report.Advice != "" {
		text += cli.PrintableLine(report.Advice) + "\n"
	}
	if *asJSON {
		text = string(raw)
	}
	_, err = io.WriteString(out, text)
	return err
}

// login prints a link that logs a browser in, once.
func (c verbs) login(ctx context.Context, args []string, out io.Writer) error {
	if _, err := c.Line("login", out).Read(args, 0); err != nil {
		return err
	}
	var link struct{ URL string }
	if err := c.Call(ctx, http.MethodPost, "/v1/login-link", nil, &link); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, cli.PrintableLine(link.URL))
	return err
}
