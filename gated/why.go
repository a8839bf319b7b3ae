package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/config"
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
