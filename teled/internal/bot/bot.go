// Package bot knows which bot the token is of, and whether that is the one of the ids that are stored.
package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

// OffsetKey is the key of the cursor with the id of the update to read next. Another bot has other updates.
const OffsetKey = "offset"

// Bot is the bot of the token. Its exported fields are set once.
type Bot struct {
	API    *telegramapi.Client
	Store  *store.Store
	Daemon string
	Log    *slog.Logger
	Now    func() time.Time

	mu    sync.Mutex
	known bool
	mark  string
}

// Learn asks Telegram which bot it is, and stores that. mark begins the ids that are the bot's own, see msg.BotMark.
func (b *Bot) Learn(ctx context.Context) (me telegramapi.User, mark string, err error) {
	if err = b.API.Call(ctx, "getMe", nil, &me); err != nil {
		return me, "", err
	}
	if me.ID == 0 {
		return me, "", errors.New("getMe: the server names no bot: check TELEGRAM_API_URL")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mark, err = b.note(ctx, strconv.FormatInt(me.ID, 10)); err != nil {
		return me, "", err
	}
	b.known = true
	return me, b.mark, nil
}

// note stores a bot that is another one than before.
func (b *Bot) note(ctx context.Context, id string) (mark string, err error) {
	bots, err := b.Store.Bots(ctx, b.Daemon)
	if err != nil {
		return "", err
	}
	before := bots.Current
	if before == id {
		return msg.BotMark(bots.First, id), nil
	}
	err = b.Store.Write(ctx, func(tx *store.Tx) error {
		if err := tx.PutBot(b.Daemon, id, b.Now().UnixMilli()); err != nil || before == "" {
			return err
		}
		return tx.DeleteCursor(b.Daemon, OffsetKey)
	})
	if err != nil || before == "" {
		return "", err
	}
	b.Log.Warn("running as another bot than before: what that one sent in private chats and basic groups can no "+
		"longer be changed",
		"bot", id, "before", before)
	return msg.BotMark(bots.First, id), nil
}

// Mark begins the ids that are the bot's own. Its error is a *adapter.Failure: a part that needs the mark was not sent.
func (b *Bot) Mark(ctx context.Context) (mark string, err error) {
	b.mu.Lock()
	known, mark := b.known, b.mark
	b.mu.Unlock()
	if known {
		return mark, nil
	}
	if _, mark, err = b.Learn(ctx); err == nil {
		return mark, nil
	}
	f := &adapter.Failure{Class: msg.Transient, Err: fmt.Errorf("%w: %w", adapter.ErrUnsent, err)}
	if errors.As(telegramapi.ConnectionError(err), &f) && f.Class == msg.Permanent {
		f.Class = msg.Transient // it is not about the part to be sent
	}
	return "", f
}
