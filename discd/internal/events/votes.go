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
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxVotePolls and maxVoteCalls bound how many polls with missed votes a session reads, and by how many calls. A
	// poll takes a call for each of its answers, at most ten, and one more for each hundred voters.
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

// heardVote names a vote that the session has reported as changed.
type heardVote struct {
	message, user string
	answer        int
}

// voteReader reads the votes that were missed: Discord does not repeat them.
type voteReader struct {
	api     *discordapi.Client
	store   *store.Store
	decoder *decoder
	read    chan pollVoters              // nil while none are read
	heard   map[heardVote]bool           // from the session's start until the voters of polls are read, nil otherwise
	missed  map[heardVote]msg.VoteChange // votes that were stored because their voters were read
	hidden  map[int64]bool               // polls whose voters Discord does not show
}

// lacks reports whether the voters of polls must be read after an event: at the start of a session, and again if it is
// resumed before they were.
func (v *voteReader) lacks(event string) bool {
	if event == "READY" {
		v.heard, v.missed = map[heardVote]bool{}, map[heardVote]msg.VoteChange{}
	}
	return v.heard != nil && (event == "READY" || event == "RESUMED")
}

// reading returns the call that reads the voters of polls, beside the receive loop.
func (v *voteReader) reading(ctx context.Context, s *adapter.Shell) func() {
	read := make(chan pollVoters)
	v.read = read
	return func() { v.readVoters(ctx, s, read) }
}

// hear remembers a vote that the session sends while the voters are read: it is newer than those. It reports
// whether the vote is stored already: who votes in that time is among the voters that are read, and may be read first.
func (v *voteReader) hear(u *discordapi.Update) (stored bool) {
	for change, of := range map[msg.VoteChange]*discordapi.PollVote{msg.VoteAdds: u.Vote, msg.VoteRemoves: u.VoteGone} {
		if of == nil {
			continue
		}
		vote := heardVote{of.MessageID, of.UserID, of.AnswerID}
		if v.heard != nil {
			v.heard[vote] = true
		}
		stored = v.missed[vote] == change
		delete(v.missed, vote)
	}
	return stored
}

// readVoters reads the voters of open polls, the newest first, since Discord does not repeat votes. It
// runs beside the receive loop, which stores them. Polls that Discord refuses to show are not read again.
// It closes read at its end.
func (v *voteReader) readVoters(ctx context.Context, s *adapter.Shell, read chan<- pollVoters) {
	defer close(read)
	var open []*msg.StoredPoll
	if s.Retry(ctx, "reading open polls failed; retrying", func() (err error) {
		open, err = rows.PollsOpen(ctx, v.store.Reader, s.Platform, maxVotePolls)
		return err
	}) != nil {
		return
	}
	calls := maxVoteCalls
	for i, p := range open {
		if v.hidden[p.ID] {
			continue
		}
		found := pollVoters{poll: p}
		err := s.Retry(ctx, "reading poll failed; retrying", func() (err error) {
			found.message, err = v.store.Message(ctx, p.MessageID)
			return err
		})
		if err == nil && found.message != nil {
			found.voters, err = v.votersOf(ctx, found.message, len(p.Poll.Options), &calls)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && calls == 0:
			s.Log.Warn("votes not read: too many calls; the next session retries", "count", len(open)-i, "err", err)
			return
		case err != nil:
			v.hidden[p.ID] = true
			s.Log.Warn("votes that were missed cannot be read", "chat", p.ChatJID, "row", p.MessageID, "err", err)
		case found.message != nil:
			select {
			case read <- found:
			case <-ctx.Done():
				return
			}
		}
	}
}

// votersOf reads the voters of each answer of a poll. It retries failures that may pass while it may make
// calls, which it counts down.
func (v *voteReader) votersOf(ctx context.Context, m *msg.Message, answers int, calls *int) (map[int][]discordapi.User,
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
			page, err := v.api.Voters(ctx, channel, m.PlatformID, answer, after)
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

// storePoll stores the votes in a poll that were missed; there are no more if more is false. Its error is ctx's.
func (v *voteReader) storePoll(ctx context.Context, s *adapter.Shell, p pollVoters, more bool) error {
	if !more {
		v.read, v.heard = nil, nil
		return nil
	}
	var stored map[string]msg.PollVote
	err := s.Retry(ctx, "reading votes failed; retrying", func() (err error) {
		stored, err = factrows.PollVotesStored(ctx, v.store.Reader, p.poll.ID, p.message)
		return err
	})
	if err != nil {
		return err
	}
	heard := func(user string, answer int) bool { return v.heard[heardVote{p.message.PlatformID, user, answer}] }
	rows := inbound.MissedVotes(p.message, p.voters, stored, v.decoder.session, v.decoder.me, heard)
	for some := range slices.Chunk(rows, maxVoteRows) {
		if err := s.ReceiveAlways(ctx, adapter.Inbound{Messages: some}); err != nil {
			return err
		}
		v.rememberMissed(p.message.PlatformID, some)
	}
	if len(rows) > 0 {
		s.Log.Info("missed votes stored", "chat", p.message.ChatJID, "row", p.message.ID, "count", len(rows))
	}
	return nil
}

// rememberMissed remembers rows of votes that were missed in the poll that a message is.
func (v *voteReader) rememberMissed(message string, rows []*msg.Message) {
	for _, m := range rows {
		vote, err := msg.ParseVote(m.Content)
		if err != nil {
			continue
		}
		_, user := msg.SplitJID(m.Sender)
		v.missed[heardVote{message, user, vote.Options[0]}] = vote.Change
	}
}
