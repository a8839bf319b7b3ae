package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
)

const (
	// maxVotePolls and maxVoteCalls bound what a session reads of the votes that were missed. A poll takes
	// a call for each of its answers, at most ten, and one more for each hundred voters.
	maxVotePolls = 100
	maxVoteCalls = 1000
	// maxVoteDelay is the longest pause after a call that fails.
	maxVoteDelay = time.Minute
	// maxVoteRows is how many votes are stored in one transaction.
	maxVoteRows = 100
)

// pollVoters are the users who voted in an open poll, as Discord has them.
type pollVoters struct {
	poll    *msg.StoredPoll
	message *msg.Message
	voters  map[int][]discordapi.User // by answer
}

// heardVote names a vote of which the session has sent a change.
type heardVote struct {
	message, user string
	answer        int
}

// lacksVotes reports whether the voters of polls are to be read after an event: at the start of a session,
// and again if it is resumed before they were.
func (l *Listener) lacksVotes(event string) bool {
	if event == "READY" {
		l.heard, l.missed = map[heardVote]bool{}, map[heardVote]msg.VoteChange{}
	}
	return l.heard != nil && (event == "READY" || event == "RESUMED")
}

// readVotes starts to read the voters of polls, beside the receive loop, if an event begins a session.
func (l *Listener) readVotes(s *adapter.Shell, event string) {
	if !l.lacksVotes(event) {
		return
	}
	ctx, read := l.beside, make(chan pollVoters)
	l.voters = read
	l.calls.Go(func() { l.readVoters(ctx, s, read) })
}

// hear remembers a vote that the session sends while the voters are read: it is newer than those. It reports
// whether the vote is stored already: who votes in that time is among the voters that are read, and may be read first.
func (l *Listener) hear(u *discordapi.Update) (stored bool) {
	for change, v := range map[msg.VoteChange]*discordapi.PollVote{msg.VoteAdds: u.Vote, msg.VoteRemoves: u.VoteGone} {
		if v == nil {
			continue
		}
		vote := heardVote{v.MessageID, v.UserID, v.AnswerID}
		if l.heard != nil {
			l.heard[vote] = true
		}
		stored = l.missed[vote] == change
		delete(l.missed, vote)
	}
	return stored
}

// readVoters reads the voters of open polls, the newest first, since Discord does not repeat votes. It
// runs beside the receive loop, which stores them. Polls that Discord refuses to show are not read again.
// It closes read at its end.
func (l *Listener) readVoters(ctx context.Context, s *adapter.Shell, read chan<- pollVoters) {
	defer close(read)
	var open []*msg.StoredPoll
	if s.Retry(ctx, "reading open polls failed; retrying", func() (err error) {
		open, err = rows.PollsOpen(ctx, l.store.Reader, s.Platform, maxVotePolls)
		return err
	}) != nil {
		return
	}
	calls := maxVoteCalls
	for i, p := range open {
		if l.hidden[p.ID] {
			continue
		}
		v := pollVoters{poll: p}
		err := s.Retry(ctx, "reading poll failed; retrying", func() (err error) {
			v.message, err = l.store.Message(ctx, p.MessageID)
			return err
		})
		if err == nil && v.message != nil {
			v.voters, err = l.votersOf(ctx, v.message, len(p.Poll.Options), &calls)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && calls == 0:
			s.Log.Warn("votes not read: too many calls; the next session retries", "count", len(open)-i, "err", err)
			return
		case err != nil:
			l.hidden[p.ID] = true
			s.Log.Warn("votes that were missed cannot be read", "chat", p.ChatJID, "row", p.MessageID, "err", err)
		case v.message != nil:
			select {
			case read <- v:
			case <-ctx.Done():
				return
			}
		}
	}
}

// votersOf reads the voters of each answer of a poll. It retries failures that may pass while it may make
// calls, which it counts down.
func (l *Listener) votersOf(ctx context.Context, m *msg.Message, answers int, calls *int) (map[int][]discordapi.User,
	error) {
	channel := m.ThreadID
	if channel == "" {
		_, channel = msg.SplitJID(m.ChatJID)
		channel = strings.TrimPrefix(channel, "dm-")
	}
	voters := map[int][]discordapi.User{}
	for answer := 1; answer <= answers; answer++ {
		delay := firstReadDelay
		for after := ""; ; {
			if *calls == 0 {
				return nil, fmt.Errorf("a session makes at most %d calls", maxVoteCalls)
			}
			*calls--
			page, err := l.api.Voters(ctx, channel, m.PlatformID, answer, after)
			if err != nil {
				f := discordapi.Failure(err)
				if f.Class == msg.Permanent || *calls == 0 || ctx.Err() != nil {
					return nil, err
				}
				adapter.Pause(ctx, max(f.After, delay))
				delay = min(2*delay, maxVoteDelay)
				continue
			}
			voters[answer] = append(voters[answer], page...)
			if len(page) < discordapi.MaxVoters {
				break
			}
			if !discordapi.Younger(page[len(page)-1].ID, after) {
				return nil, errors.New("a page of voters does not begin after the one before")
			}
			after = page[len(page)-1].ID
		}
	}
	return voters, nil
}

// storeMissed stores the votes in a poll that were missed. Its error is ctx's.
func (l *Listener) storeMissed(ctx context.Context, s *adapter.Shell, v pollVoters) error {
	var stored map[string]msg.PollVote
	err := s.Retry(ctx, "reading votes failed; retrying", func() (err error) {
		stored, err = l.store.PollVotesStored(ctx, v.poll.ID, v.message)
		return err
	})
	if err != nil {
		return err
	}
	rows := inbound.MissedVotes(v.message, v.voters, stored, l.session, l.me, func(user string, answer int) bool {
		return l.heard[heardVote{v.message.PlatformID, user, answer}]
	})
	for some := range slices.Chunk(rows, maxVoteRows) {
		if err := s.ReceiveAlways(ctx, adapter.Inbound{Messages: some}); err != nil {
			return err
		}
		l.rememberMissed(v.message.PlatformID, some)
	}
	if len(rows) > 0 {
		s.Log.Info("missed votes stored", "chat", v.message.ChatJID, "row", v.message.ID, "count", len(rows))
	}
	return nil
}

// rememberMissed remembers rows of votes that were missed in the poll that a message is.
func (l *Listener) rememberMissed(message string, rows []*msg.Message) {
	for _, m := range rows {
		vote, err := msg.ParseVote(m.Content)
		if err != nil {
			continue
		}
		_, user := msg.SplitJID(m.Sender)
		l.missed[heardVote{message, user, vote.Options[0]}] = vote.Change
	}
}
