package gateway

import (
	"context"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/msg"
)

// ballot reads what a vote or the end of a poll is about, nil for other rows. Where a platform has no
// polls, the numbered reactions to a poll's text are votes.
func (f *reader) ballot(ctx context.Context, m *msg.Message) (b *decide.Ballot, err error) {
	b = &decide.Ballot{}
	row := int64(0)
	switch m.Verb {
	case msg.VerbVote:
		if b.Vote, err = msg.ParseVote(m.Content); err != nil {
			return b, nil //nolint:nilerr // it names no poll
		}
		row = b.Vote.Row
	case msg.VerbPollEnd:
		if b.End, err = msg.ParsePollEnd(m.Content); err != nil {
			return b, nil //nolint:nilerr // it names no poll
		}
		row = b.End.Row
	case msg.VerbReaction:
		return f.reactionBallot(ctx, m)
	default:
		return nil, nil
	}
	b.Poll, err = f.pollOf(ctx, m, row)
	return b, err
}

// reactionBallot returns the vote that a reaction is, nil if it is none.
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
	if poll, err = f.st.PollOfMessage(ctx, row); err != nil || poll == nil || poll.ChatJID != m.ChatJID {
		return nil, err
	}
	return poll, nil
}
