package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/teled/internal/inbound"
	"arizuko/teled/internal/telegramapi"
)

const (
	// cursor is where teled keeps the id of the update to read next.
	cursor = "offset"
	// pollTimeout is how long Telegram may take to say that nothing has happened.
	pollTimeout = 50 * time.Second
	// storeAgain is how long to wait when the database is in the way.
	storeAgain = time.Second
	// conflictPause is how long another poller is left alone.
	conflictPause = 30 * time.Second
)

// updates are the kinds of events that we read; some come only if they are named.
var updates = []string{"message", "edited_message", "channel_post", "edited_channel_post", "message_reaction", "my_chat_member", "chat_member", "poll", "callback_query"}

// listener reads Telegram's updates. Its fields are set once.
type listener struct {
	*telegram
	store     *store.Store
	log       *slog.Logger
	bots      adapter.Bots
	undecoded prometheus.Counter
}

// platform is what the shell runs: what sends, and what listens.
type platform struct {
	*telegram
	*listener
}

// Listen implements adapter.Listener.
func (l *listener) Listen(ctx context.Context, s *adapter.Shell) error {
	me, err := l.me(ctx)
	if err != nil {
		return broken(err)
	}
	value, err := l.store.DaemonCursor(ctx, s.Daemon, cursor)
	if err != nil {
		return err
	}
	offset, _ := strconv.ParseInt(value, 10, 64) // none at first
	s.Connected()
	for {
		var batch []json.RawMessage
		err := l.api.Call(ctx, "getUpdates", telegramapi.Params{
			"offset": offset, "timeout": int64(pollTimeout / time.Second), "allowed_updates": updates,
		}, &batch)
		if err != nil {
			return broken(err)
		}
		s.Connected()
		for _, raw := range batch {
			if offset, err = l.take(ctx, s, me, raw, offset); err != nil {
				return err
			}
		}
	}
}

func (l *listener) me(ctx context.Context) (me inbound.Self, err error) {
	var user telegramapi.User
	err = l.api.Call(ctx, "getMe", nil, &user)
	return inbound.Self{ID: user.ID, Username: user.Username}, err
}

// take stores one update together with the offset behind it, however long that takes, and
// returns that offset. One that cannot be read is passed over.
func (l *listener) take(ctx context.Context, s *adapter.Shell, me inbound.Self, raw json.RawMessage, offset int64) (int64, error) {
	var u telegramapi.Update
	var in adapter.Inbound
	err := json.Unmarshal(raw, &u)
	if u.ID == 0 { // whatever is wrong with it, where it stands has to be known
		u.ID = updateID(raw, offset)
	}
	if err == nil {
		in, err = inbound.Convert(&u, me)
	}
	if err != nil {
		l.undecoded.Inc()
		l.log.Error("update passed over: it cannot be read", "update", u.ID, "err", err)
		in = adapter.Inbound{}
	}
	next := u.ID + 1
	in.Messages = slices.DeleteFunc(in.Messages, func(m *msg.Message) bool { return !l.bots.Hears(m) })
	in.Cursor = &adapter.Cursor{Key: cursor, Value: strconv.FormatInt(next, 10)}
	for {
		err := s.Receive(ctx, in)
		if err == nil || ctx.Err() != nil {
			return next, ctx.Err()
		}
		l.log.Error("cannot store an update; trying again", "update", u.ID, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(storeAgain):
		}
	}
}

// updateID finds the id of an update that is otherwise unreadable; it is the one asked for if
// there is none at all.
func updateID(raw json.RawMessage, offset int64) int64 {
	var u struct {
		ID int64 `json:"update_id"`
	}
	_ = json.Unmarshal(raw, &u) // what is missing is what is told
	return max(u.ID, offset)
}

// broken says why the connection broke, in words that tell an operator what to do.
func broken(err error) error {
	var refused *telegramapi.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case http.StatusUnauthorized, http.StatusNotFound:
		return &adapter.Failure{Class: msg.Auth, Err: fmt.Errorf("Telegram does not accept TELEGRAM_BOT_TOKEN: ask @BotFather for the current one (%w)", err)} //nolint:staticcheck // a name
	case http.StatusConflict:
		return &adapter.Failure{Class: msg.Transient, After: conflictPause, Err: fmt.Errorf("%s (%w)", conflict(refused), err)}
	}
	return &adapter.Failure{Class: msg.Transient, After: refused.RetryAfter, Err: err}
}
