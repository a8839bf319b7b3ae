package events

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/bwmarrin/discordgo"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxBackfillTries bounds the calls for the same page of missed messages.
	maxBackfillTries = 5
	// firstBackfillDelay is the pause after the first of them that fails; it doubles with each.
	firstBackfillDelay = time.Second
)

// backfill stores the messages that were missed while discd was not connected: in private chats when
// a session begins, in a guild when Discord sends the guild. Later events wait in the queue. A channel
// that cannot be read is left to the next session, so that other chats don't wait for it.
func (l *Listener) backfill(ctx context.Context, s *adapter.Shell, u *discordapi.Update) error {
	var gaps []gap
	switch {
	case u.Ready != nil:
		gaps = l.read.privateGaps()
	case u.Guild != nil:
		all := slices.Concat(u.Guild.Channels, u.Guild.Threads)
		if err := l.storeBookmarks(ctx, s, all...); err != nil {
			return err
		}
		gaps = l.read.missed(all...)
	case u.Made():
		return l.storeBookmarks(ctx, s, *u.Channel)
	}

	for _, g := range gaps {
		count := 0
		for raw, err := range discordapi.AllAfter(g.Channel, g.After, l.nextPage(ctx)) {
			if err != nil {
				s.Log.Warn("backfill failed; the next session retries", "channel", g.Channel, "err", err)
				l.read.hold(g)
				break
			}
			if err := l.receive(ctx, s, &discordgo.Event{Type: "MESSAGE_CREATE", RawData: raw}); err != nil {
				return err
			}
			count++
		}
		if count > 0 {
			s.Log.Info("missed messages stored", "channel", g.Channel, "count", count)
		}
	}
	return ctx.Err()
}

// nextPage reads pages of messages, and retries failures that may pass.
func (l *Listener) nextPage(ctx context.Context) func(channel, after string) ([]json.RawMessage, error) {
	return func(channel, after string) (page []json.RawMessage, err error) {
		for try := range maxBackfillTries {
			if page, err = l.api.MessagesAfter(ctx, channel, after); err == nil || discordapi.Failure(err).Class == msg.Permanent {
				break
			}
			adapter.Pause(ctx, max(discordapi.Failure(err).After, firstBackfillDelay<<try))
		}
		return page, err
	}
}

// storeBookmarks stores the bookmarks of channels that have none.
func (l *Listener) storeBookmarks(ctx context.Context, s *adapter.Shell, channels ...discordapi.Channel) error {
	fresh := l.read.begin(channels...)
	if len(fresh) == 0 {
		return nil
	}
	return s.Retry(ctx, "storing bookmarks failed; retrying", func() error {
		return l.store.Write(ctx, func(tx *store.Tx) error {
			for key, value := range fresh {
				if err := tx.PutCursor(s.Daemon, key, value); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
