package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/slackapi"
)

const (
	// firstRetry and maxRetry bound the pauses before conversations that could not be read are read again.
	firstRetry = time.Second
	maxRetry   = time.Minute
	// maxHeld and maxHeldBytes bound the messages of a conversation that are held in memory, to be stored oldest
	// first. Twice as many may be held while they are read.
	maxHeld      = 10_000
	maxHeldBytes = 32 << 20
	// maxRootPages bounds the pages of posts before the bookmark, in which threads are looked for that
	// began there.
	maxRootPages = 3
)

// API has the calls of a Reader.
type API interface {
	Conversations(ctx context.Context) (all []slackapi.Conversation, refused, err error)
	History(ctx context.Context, channel string, w slackapi.Window, cursor string) (slackapi.Page, error)
	Replies(ctx context.Context, channel, thread string, w slackapi.Window, cursor string) (slackapi.Page, error)
	Reactions(ctx context.Context, channel, ts string) (json.RawMessage, error)
	Patiently(ctx context.Context, call func() error) error
}

// Reader reads gaps. Its fields are set once.
type Reader struct {
	*Bookmarks
	API   API
	Store *store.Store
	// Platform is the first part of addresses.
	Platform string
	// Self is the bot.
	Self func() inbound.Self
	// Convert makes rows of a message, a change or a reaction, as it does of the same event when it comes live.
	Convert func(ctx context.Context, e *inbound.Event) (adapter.Inbound, error)
}

// Run reads each gap behind the live messages, until ctx ends.
func (r *Reader) Run(ctx context.Context, s *adapter.Shell) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.opened:
			r.readGap(ctx, s)
		}
	}
}

// readGap reads all conversations, and those that failed again until none is left. One that cannot be read
// delays no other.
func (r *Reader) readGap(ctx context.Context, s *adapter.Shell) {
	delay := firstRetry
	for ctx.Err() == nil {
		gap := r.current()
		if gap == 0 {
			return
		}
		err := r.readAll(ctx, s, gap)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && r.close(gap):
			s.Log.Info("history read up to now")
			return
		case err != nil:
			s.Log.Warn("reading missed messages failed; retrying", "wait", delay, "err", err)
			adapter.Pause(ctx, delay)
			delay = min(2*delay, maxRetry)
		}
	}
}

// readAll reads the conversations that are left of a gap, and returns the last failure that may pass.
func (r *Reader) readAll(ctx context.Context, s *adapter.Shell, gap int) (failure error) {
	listed, refused, err := r.API.Conversations(ctx)
	if err != nil {
		return fmt.Errorf("listing conversations: %w", slackapi.Explain(err))
	}
	if refused != nil {
		s.Log.Warn("some conversations are not listed: what was missed there is not read", "err", refused)
	}
	ids := make([]string, len(listed))
	for i := range listed {
		ids[i] = listed[i].ID
	}
	for unread := r.left(ids); len(unread) > 0; {
		if ctx.Err() != nil || r.current() != gap {
			return failure
		}
		next := r.nextOf(unread)
		channel := unread[next]
		unread = slices.Delete(unread, next, next+1)
		err := r.readConversation(ctx, s, channel, gap)
		switch {
		case err == nil:
		case slackapi.Failure(err).Class == msg.Permanent:
			s.Log.Warn("missed messages of a conversation cannot be read", "channel", channel, "err",
				slackapi.Explain(err))
			if isGone(err) {
				err = r.forget(ctx, channel)
			} else {
				err = nil
			}
			r.settle(channel, gap)
		}
		if err != nil {
			failure = fmt.Errorf("channel %s: %w", channel, err)
		}
	}
	return failure
}

// isGone reports whether the bot is no longer in a conversation.
func isGone(err error) bool {
	return slices.Contains([]string{"channel_not_found", "not_in_channel", "is_archived"}, slackapi.Code(err))
}

// readConversation stores the missed messages of a conversation, oldest first, in parts that fit into memory.
func (r *Reader) readConversation(ctx context.Context, s *adapter.Shell, channel string, gap int) error {
	g := r.span(channel, s.MaxAge)
	count := 0
	for {
		found, err := r.gather(ctx, s, g)
		if err != nil {
			return err
		}
		changed, err := r.storeChanges(ctx, s, g, false, nil)
		if err != nil {
			return err
		}
		stored, err := r.storeAll(ctx, s, channel, found)
		if err != nil {
			return err
		}
		if count += changed + stored; g.limit != 0 {
			continue
		}
		if changed, err = r.storeChanges(ctx, s, g, true, found); err != nil {
			return err
		}
		if count += changed; count > 0 {
			s.Log.Info("missed messages read", "channel", channel, "count", count)
		}
		if read := r.advance(channel, g.through); read != nil {
			if err := s.ReceiveAlways(ctx, adapter.Inbound{Cursor: read}); err != nil {
				return err
			}
		}
		r.settle(channel, gap)
		return nil
	}
}

// storeAll stores messages, and with each how far the conversation has been read. Those that are stored
// already change nothing. count is how many make new rows.
func (r *Reader) storeAll(ctx context.Context, s *adapter.Shell, channel string, found []message) (count int,
	err error) {
	for i := range found {
		var in adapter.Inbound
		decode := func() (err error) {
			m := &inbound.Message{}
			if err = json.Unmarshal(found[i].raw, m); err == nil {
				m.Channel = channel
				in, err = r.Convert(ctx, &inbound.Event{Message: m})
			}
			return err
		}
		if !s.Decode("message "+found[i].TS+" of "+channel, decode) || len(in.Messages) == 0 {
			continue
		}
		if row := in.Messages[0]; row.PlatformID != "" {
			if known, err := r.Store.MessageByPlatformID(ctx, row.ChatJID, row.PlatformID); err == nil && known == nil {
				count++
			}
		}
		in.Cursor = r.advance(channel, found[i].at)
		if err := s.ReceiveAlways(ctx, in); err != nil {
			return count, err
		}
	}
	return count, nil
}
