package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"arizuko/gated/internal/deciding/gateway"
	"arizuko/gated/internal/redecided"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/pkg/cli"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// redecide is "gated redecide", which `migrate rehearse` runs on a copy of the database: it decides stored
// messages and reminders again, and prints how that compares. It changes nothing.
func redecide(ctx context.Context, args []string, out io.Writer) error {
	line := cli.Daemon{Name: "gated"}.Line("redecide [--days N] [--rows N]", out)
	days := line.Int("days", 7, "how many days of messages")
	rows := line.Int("rows", 10_000, "how many messages at most")
	if _, err := line.Read(args, 0); err != nil {
		return err
	}
	if *days < 1 || *rows < 1 {
		return line.UsageError("--days and --rows: want numbers from 1")
	}
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	now := time.Now()
	since := now.AddDate(0, 0, -*days).UnixMilli()
	settings := fmt.Sprintf("OPERATORS has %d senders, ASSISTANT_NAME is %s, MAX_AGE is %s, IMPULSE_THRESHOLD is %d, "+
		"IMPULSE_MAX_HOLD is %s, the time zone is %s", len(cfg.Operators), cfg.AssistantName, cfg.MaxAge,
		cfg.ImpulseThreshold, cfg.ImpulseMaxHold, reminders.LocalZone())
	if _, err := fmt.Fprintf(out, "decided again with the settings of this environment: %s\n",
		cli.PrintableLine(settings)); err != nil {
		return err
	}
	return cfg.read(ctx, func(st store.Reader) error {
		for _, check := range []func() (redecided.Check, error){
			func() (redecided.Check, error) { return cfg.redecideMessages(ctx, st, since, *rows) },
			func() (redecided.Check, error) { return reminders.Redecide(ctx, st, now.UnixMilli(), *rows) },
		} {
			c, err := check()
			if err != nil {
				return fmt.Errorf("%s: %w", c.What, err)
			}
			c.Print(out)
		}
		return nil
	})
}

func (c *Config) redecideMessages(ctx context.Context, st store.Reader, since int64, limit int) (check redecided.Check,
	err error) {
	routd, err := startResolver(ctx)
	if err != nil {
		return redecided.Check{What: "messages"}, err
	}
	defer func() { err = errors.Join(err, routd.close()) }()
	defaults, err := c.groupDefaults()
	if err != nil {
		return redecided.Check{What: "messages"}, err
	}
	return gateway.Redecide(ctx, gateway.Config{
		MaxAge: c.MaxAge, Impulse: msg.DefaultImpulse(c.ImpulseThreshold, c.ImpulseMaxHold), Operators: c.Operators,
		BotNames: c.names(), Defaults: defaults,
	}, st, routd.resolve, since, limit)
}

// resolver is the routd of this version, beside this program, which answers by the same database.
type resolver struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	ask      *json.Encoder
	answers  *json.Decoder
	problems strings.Builder
}

func startResolver(ctx context.Context) (*resolver, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &resolver{cmd: exec.CommandContext(ctx, filepath.Join(filepath.Dir(self), "routd"), "resolve")}
	r.cmd.Env, r.cmd.Stderr = environ(), &r.problems
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(syscall.SIGTERM) }
	r.cmd.WaitDelay = 5 * time.Second
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.ask, r.answers = json.NewEncoder(r.in), json.NewDecoder(bufio.NewReader(answers))
	return r, r.cmd.Start()
}

func (r *resolver) resolve(_ context.Context, q routeapi.Replay) ([]routeapi.Answer, error) {
	if len(q.Items) == 0 {
		return nil, nil
	}
	if err := r.ask.Encode(q); err != nil {
		return nil, r.failed(err)
	}
	var response routeapi.Response
	if err := r.answers.Decode(&response); err != nil {
		return nil, r.failed(err)
	}
	return response.Items, nil
}

// failed is an error of routd, with its output.
func (r *resolver) failed(err error) error {
	return fmt.Errorf("routd resolve: %w %s", errors.Join(err, r.close()), strings.TrimSpace(r.problems.String()))
}

func (r *resolver) close() error {
	_ = r.in.Close()
	if err := r.cmd.Wait(); err != nil && r.cmd.ProcessState == nil {
		return err
	}
	if r.cmd.ProcessState.ExitCode() != 0 {
		return fmt.Errorf("routd resolve ended: %s", r.cmd.ProcessState)
	}
	return nil
}
