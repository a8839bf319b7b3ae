package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"arizuko/gated/internal/running/groupfiles"
	"arizuko/gated/internal/shown/turncontext"
	"arizuko/pkg/cli"
	"arizuko/pkg/config"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/store"
	"arizuko/pkg/why"
)

// explain is "gated why": it prints the path of a message.
func explain(ctx context.Context, args []string, out io.Writer) error {
	line := cli.Daemon{Name: "gated"}.Line("why MESSAGE | why --chat JID", out)
	chat := line.String("chat", "", "the last message of a user in this chat")
	rest, err := line.Read(args, 1)
	if err != nil {
		return err
	}
	if (len(rest) == 0) == (*chat == "") {
		return line.UsageError("give MESSAGE, which is messages.id and row= in the log, or --chat, one of them")
	}
	id := int64(0)
	if *chat == "" {
		if id, err = line.ID(rest[0], "message"); err != nil {
			return err
		}
	}
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	return cfg.read(ctx, func(st store.Reader) error {
		if *chat != "" {
			if id, _, err = st.LastUser(ctx, *chat); err == nil && id == 0 {
				err = fmt.Errorf("no message of a user in chat %q: write /chatid there, which answers with its address",
					*chat)
			}
		}
		if err != nil {
			return err
		}
		path, err := why.Read(ctx, st, id)
		if err != nil {
			return err
		}
		path.Daemons.Ask(ctx, cfg.Base, time.Now().UnixMilli())
		_, err = io.WriteString(out, hidden().String(why.Text(path, time.Now(), time.Local)))
		return err
	})
}

// hidden hides the same secrets as gated's log, as far as the configuration can be read.
func hidden() config.Redactor { return config.NewRedactor(hiddenSecrets()...) }

func hiddenSecrets() []string {
	cfg, err := loadConfig()
	secrets := cfg.agentSecrets(environ())
	if err != nil {
		return secrets
	}
	if shared, err := cfg.Secret(); err == nil {
		secrets = append(secrets, shared)
	}
	return secrets
}

// contextHelp says how an earlier prompt may have differed.
const contextHelp = `
Prints the prompt of a turn that has started, made again from the rows; gated need not run.
It is the first prompt of a run: what its agent had been shown before is not stored, and is shown.
It cannot tell:
  <system> lines    deleted once the turn is answered
  names             assistant, titles, operators and "observe" are those of today
  later changes     what was deleted by retention, a chat that has moved, an answer that failed to arrive
  <observed>        of a turn without an answer: all rows until now
Secrets of gated and control characters are replaced.`

// contextCommand is "gated context show TURN". It reads the database itself, so that gated
// need not run.
func contextCommand(ctx context.Context, args []string, out io.Writer) error {
	line := cli.Daemon{Name: "gated"}.Line("context show TURN", out)
	rest, err := line.Read(args, 2)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, contextHelp)
		return err
	case err != nil:
		return err
	case len(rest) == 0 || rest[0] != "show":
		return line.UsageError("say what to do: show")
	case len(rest) == 1:
		return line.UsageError("TURN is missing: give turns.id, which is turn= in the log and in `gated why MESSAGE`")
	}
	id, err := line.ID(rest[1], "turn")
	if err != nil {
		return err
	}
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	return cfg.read(ctx, func(st store.Reader) error {
		text, err := cfg.promptAgain(ctx, st, id)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, hidden().String(cli.Printable(text)))
		return err
	})
}

func (g *gated) promptAgain(ctx context.Context, turn int64) (string, error) {
	text, err := g.cfg.promptAgain(ctx, g.Store.Reader, turn)
	return hidden().String(text), err
}

func (c *Config) promptAgain(ctx context.Context, st store.Reader, turn int64) (string, error) {
	reader := turncontext.Reader{Store: st, Operators: c.Operators, Location: time.Local, Names: c.names(),
		Files: groupfiles.InboxPaths}
	return reader.Again(ctx, turn, groupconfig.Config{AssistantName: c.AssistantName})
}
