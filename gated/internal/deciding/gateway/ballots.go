package gateway

import (
	"context"

	"arizuko/gated/internal/deciding/decide"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// loadBallot reads the poll that a vote or the end of a poll is about.
func (f *reader) loadBallot(ctx context.Context, r *decide.Row) (err error) {
	b := &decide.Ballot{}
	r.Ballot = b
	row := int64(0)
	if r.Verb == msg.VerbVote {
		if b.Vote, err = msg.ParseVote(r.Content); err == nil {
			row = b.Vote.Row
		}
	} else if b.End, err = msg.ParsePollEnd(r.Content); err == nil {
		row = b.End.Row
	}
	if err != nil {
		return nil //nolint:nilerr // it names no poll
	}
	b.Poll, err = f.pollOf(ctx, r.Message, row)
	return err
}

// reactionBallot returns the vote that a reaction is, nil if it is none: where a platform has no polls, the numbered
// reactions to a poll's text are votes.
func (f *reader) reactionBallot(ctx context.Context, m *msg.Message) (*decide.Ballot, error) {
	limits, ok := msg.PollLimitsOf(m.ChatJID)
	if !ok || limits.Native || msg.ReactionVote(m.Content, msg.MaxPollOptions) == nil {
		return nil, nil
	}
	poll, err := f.pollOf(ctx, m, 0)
	if err != nil || poll == nil {
		return nil, err
	}
	vote := msg.ReactionVote(m.Content, len(poll.Poll.Options))
	if vote == nil {
		return nil, nil
	}
	return &decide.Ballot{Poll: poll, Vote: vote}, nil
}

// pollOf returns the poll that an outbound row is, or without one the target of a row; nil if that is
// no poll of the row's chat.
func (f *reader) pollOf(ctx context.Context, m *msg.Message, row int64) (poll *msg.StoredPoll, err error) {
	if row == 0 && m.TargetID != "" {
		target, err := f.st.MessageByPlatformID(ctx, m.ChatJID, m.TargetID)
		if err != nil || target == nil || target.Kind != msg.KindPoll {
			return nil, err
		}
		row = target.ID
	}
	if row == 0 {
		return nil, nil
	}
	if poll, err = factrows.PollOfMessage(ctx, f.st.Reader, row); err != nil || poll == nil || poll.ChatJID != m.ChatJID {
		return nil, err
	}
	return poll, nil
}
