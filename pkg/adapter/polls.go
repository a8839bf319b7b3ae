package adapter

import (
	"context"
	"time"

	"arizuko/pkg/msg"
)

const (
	// pollTimeout is how long a vote waits for the ids of a poll that is being sent: users may vote before
	// they are stored.
	pollTimeout  = 5 * time.Second
	pollInterval = 50 * time.Millisecond
)

// PollFor returns the outbound row of the poll that find looks for, nil if it is no poll of the bot. It
// retries while the database fails; its error is ctx's.
func (s *Shell) PollFor(ctx context.Context, find func(context.Context) (*msg.Message, error)) (poll *msg.Message, err error) {
	for waited := time.Duration(0); ; waited += pollInterval {
		var sending bool
		err := s.Retry(ctx, "looking up poll failed; retrying", func() (err error) {
			if sending, err = s.Store.SendsPoll(ctx, s.Platform); err == nil { // before find, so that no poll is missed
				poll, err = find(ctx)
			}
			return err
		})
		if poll != nil && (poll.Direction != msg.Out || poll.Kind != msg.KindPoll) {
			poll = nil
		}
		if poll != nil || err != nil || !sending || waited >= pollTimeout {
			return poll, err
		}
		Pause(ctx, pollInterval)
	}
}
