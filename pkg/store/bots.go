package store

import (
	"context"
	"errors"
	"strings"

	"arizuko/pkg/msg"
)

// AuditBot is the entry of the audit when an adapter runs as another bot than before.
const AuditBot = "change bot"

// Keys of the cursors of an adapter that say which bots it ran as; the values are their ids.
const (
	botPrefix  = "bot:"
	firstBot   = botPrefix + "first"
	currentBot = botPrefix + "current"
)

// Bots are the ids of the bots that an adapter ran as: the first one, and the one that it runs as, or did last. They
// are "" before it has connected.
type Bots struct{ First, Current string }

// Bots returns those of an adapter.
func (r Reader) Bots(ctx context.Context, daemon string) (Bots, error) {
	all, err := r.DaemonCursors(ctx, daemon, botPrefix)
	return Bots{all[firstBot], all[currentBot]}, err
}

// PutBot stores that an adapter runs as another bot than before. The ids that are stored when it has run as none yet
// belong to this one.
func (tx *Tx) PutBot(daemon, bot string, now int64) error {
	before, err := tx.Bots(Uncancelled(), daemon)
	if err != nil {
		return err
	}
	if before.First == "" {
		if err := tx.PutCursor(daemon, firstBot, bot); err != nil {
			return err
		}
	} else if err := tx.PutAudit(daemon, AuditBot, before.Current+" to "+bot, now); err != nil {
		return err
	}
	return tx.PutCursor(daemon, currentBot, bot)
}

// Unreachable says why the platform no longer knows a message by the id that is stored, so that it can be neither
// changed nor closed; "" if nothing is known against it.
func (r Reader) Unreachable(ctx context.Context, m *msg.Message) (why string, err error) {
	switch {
	case strings.HasPrefix(m.PlatformID, oldID):
		return "is from before the group became a supergroup, where it cannot be changed", nil
	case m.PlatformID == "" || !msg.IDsOfBot(m.ChatJID):
		return "", nil
	}
	bots, err := r.Bots(ctx, msg.DaemonOf(m.ChatJID))
	if mark, _ := msg.CutBotMark(m.PlatformID); err == nil && mark != msg.BotMark(bots.First, bots.Current) {
		why = "is from the time of another bot, which alone can change it"
	}
	return why, err
}

// PutAudit records a change that an operator made.
func (tx *Tx) PutAudit(who, what, detail string, now int64) error {
	if who == "" || what == "" {
		return errors.New("an audit row needs who and what")
	}
	return tx.Exec(`INSERT INTO audit (at, who, what, detail) VALUES (?,?,?,?)`,
		now, CleanName(who), CleanName(what), CleanName(detail))
}
