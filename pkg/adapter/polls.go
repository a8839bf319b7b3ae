package adapter

import (
	"context"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/msg"
)

const (
	// pollTimeout is how long a vote waits for the ids of a poll that is being sent: users may vote before
	// they are stored.
	pollTimeout  = 5 * time.Second
	pollInterval = 50 * time.Millisecond
)

// PollFor returns the outbound row of the poll that find looks for, nil if it is no poll of the bot. While a
// poll is being sent to the chat, or to any with chatJID "", it waits for its ids, once for each such poll:
// the caller's events must not wait for votes. It retries while the database fails; its error is ctx's.
func (s *Shell) PollFor(ctx context.Context, chatJID string, find func(context.Context) (*msg.Message, error)) (poll *msg.Message, err error) {
	for waited := time.Duration(0); ; waited += pollInterval {
		var sending []int64
		err := s.Retry(ctx, "looking up poll failed; retrying", func() (err error) {
			if sending, err = s.Store.PollsSending(ctx, s.Platform, chatJID); err == nil { // before find, so that no poll is missed
				poll, err = find(ctx)
			}
			return err
		})
		if poll != nil && (poll.Direction != msg.Out || poll.Kind != msg.KindPoll) {
			poll = nil
		}
		if poll != nil || err != nil || !s.pollWaits.wait(sending, waited >= pollTimeout) {
			return poll, err
		}
		Pause(ctx, pollInterval)
	}
}

// pollWaits knows the polls whose ids were waited for in vain while they are being sent.
type pollWaits struct {
	mu     sync.Mutex
	missed []int64
}

// wait reports whether to wait for one of the polls that are being sent. ended means that it was waited for
// long enough.
func (w *pollWaits) wait(sending []int64, ended bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ended {
		w.missed = sending
	}
	return slices.ContainsFunc(sending, func(id int64) bool { return !slices.Contains(w.missed, id) })
}
