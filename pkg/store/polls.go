package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

func scanPoll(scan scanner) (*msg.StoredPoll, error) {
	var p msg.StoredPoll
	var options string
	var result sql.NullString
	err := scan(&p.ID, &p.MessageID, &p.Folder, &p.ChatJID, &p.Topic, &p.Poll.Question, &options, &p.Poll.Multiple,
		&p.Poll.ClosesAt,
		&p.State, &p.CreatedAt, &p.ClosedAt, &p.EndPending, &result)
	if err != nil {
		return nil, fmt.Errorf("scan poll: %w", err)
	}
	if json.Unmarshal([]byte(options), &p.Poll.Options) != nil { // JSON of another shape counts as none
		p.Poll.Options = nil
	}
	if result.Valid && json.Unmarshal([]byte(result.String), &p.Poll.Result) != nil {
		p.Poll.Result = nil
	}
	return &p, nil
}

func (r Reader) polls(ctx context.Context, query string, args ...any) ([]*msg.StoredPoll, error) {
	return collect(ctx, r, scanPoll, query, args...)
}

// Poll returns a poll by id, nil if there is none.
func (r Reader) Poll(ctx context.Context, id int64) (*msg.StoredPoll, error) {
	return first(r.polls(ctx, queryPoll, id))
}

// PollOfMessage returns the poll that an outbound row is, nil if it is none.
func (r Reader) PollOfMessage(ctx context.Context, messageID int64) (*msg.StoredPoll, error) {
	return first(r.polls(ctx, queryPollByMessage, messageID))
}

// PollsOf returns a group's polls in a chat that have a state and ids below before, the newest first, at
// most limit.
func (r Reader) PollsOf(ctx context.Context, chatJID, folder string, state msg.PollState, before int64,
	limit int) ([]*msg.StoredPoll, error) {
	return r.polls(ctx, queryPollsInState, chatJID, folder, state, before, limit)
}

// Polls returns the polls of all chats with an id below before, 0 for all, the newest first; only open ones if open.
func (r Reader) Polls(ctx context.Context, open bool, before int64, limit int) ([]*msg.StoredPoll, error) {
	query := queryPolls
	if open {
		query = queryAllOpen
	}
	return r.polls(ctx, query, orNewest(before), limit)
}

// PollsDue returns open polls whose time to close has come, the earliest first, at most limit.
func (r Reader) PollsDue(ctx context.Context, now int64, limit int) ([]*msg.StoredPoll, error) {
	return r.polls(ctx, queryPollsDue, now, limit)
}

// PollsEnding returns closed polls after an id whose message on the platform is still to be closed,
// at most limit.
func (r Reader) PollsEnding(ctx context.Context, after int64, limit int) ([]*msg.StoredPoll, error) {
	return r.polls(ctx, queryPollsEnding, after, limit)
}

// PollsUndelivered returns open polls after an id whose message will never be delivered, at most limit.
func (r Reader) PollsUndelivered(ctx context.Context, after int64, limit int) ([]*msg.StoredPoll, error) {
	return r.polls(ctx, queryPollsUndelivered, after, limit)
}

// PollVotes returns what each voter chooses in a poll, in no order.
func (r Reader) PollVotes(ctx context.Context, pollID int64) ([]msg.PollVote, error) {
	return collect(ctx, r, func(scan scanner) (v msg.PollVote, err error) {
		var options string
		if err = scan(&v.Voter, &v.Name, &options, &v.At); err == nil {
			v.Options = parseOptions(options)
		}
		return v, err
	}, queryPollVotes, pollID)
}

// PollsOpen returns the open polls that users of a platform can see, the newest first, at most limit.
func (r Reader) PollsOpen(ctx context.Context, platform string, limit int) ([]*msg.StoredPoll, error) {
	return r.polls(ctx, queryPollsOpen, platform, limit)
}

// PollVotesStored returns by voter what each chooses in the poll of an outbound row once all votes that are
// stored with the poll as their target are counted. At is 0 for votes that are not counted yet.
func (r Reader) PollVotesStored(ctx context.Context, pollID int64, m *msg.Message) (map[string]msg.PollVote, error) {
	type row struct{ sender, name, content string }
	// The rows are read before the counts: one that is counted in between is counted twice, which changes nothing.
	rows, err := collect(ctx, r, func(scan scanner) (v row, err error) {
		return v,
			scan(&v.sender, &v.name, &v.content)
	},
		queryVoteRows, m.ChatJID, m.PlatformID)
	if err != nil {
		return nil, err
	}
	counted, err := r.PollVotes(ctx, pollID)
	if err != nil {
		return nil, err
	}
	stored := make(map[string]msg.PollVote, len(counted))
	for _, v := range counted {
		stored[v.Voter] = v
	}
	for _, row := range rows {
		if vote, err := msg.ParseVote(row.content); err == nil {
			v := stored[row.sender]
			stored[row.sender] = msg.PollVote{Voter: row.sender, Name: row.name, Options: vote.Apply(v.Options),
				At: v.At}
		}
	}
	return stored, nil
}

// parseOptions reads a list of options. JSON of another shape counts as none.
func parseOptions(text string) (options []int) {
	if json.Unmarshal([]byte(text), &options) != nil {
		return nil
	}
	return options
}

// MessageByPollRef returns the outbound row of the poll that a platform calls by a name of its own, nil
// if there is none.
func (r Reader) MessageByPollRef(ctx context.Context, daemon, ref string) (*msg.Message, error) {
	var id int64
	if found, err := r.get(ctx, []any{&id}, queryPollRef, daemon, ref); err != nil || !found {
		return nil, err
	}
	return r.Message(ctx, id)
}

// PollsSending returns the outbound rows of polls that are being sent just now, so that their ids may be
// known soon: in a chat, or with chatJID "" on a platform. Those that wait for another attempt are none.
func (r Reader) PollsSending(ctx context.Context, platform, chatJID string) ([]int64, error) {
	return collect(ctx, r, func(scan scanner) (id int64, err error) { return id, scan(&id) }, queryPollsSending,
		platform, chatJID)
}

// PollResult counts the votes of a poll.
func (r Reader) PollResult(ctx context.Context, p *msg.StoredPoll) (*msg.PollResult, error) {
	result := &msg.PollResult{Counts: make([]int, len(p.Poll.Options))}
	err := r.each(ctx, func(scan scanner) (bool, error) {
		var option, votes int
		err := scan(&option, &votes)
		if err == nil && option >= 1 && option <= len(result.Counts) {
			result.Counts[option-1] = votes
		}
		return err == nil, err
	}, queryPollCounts, p.ID, p.Poll.Multiple)
	if err == nil {
		_, err = r.get(ctx, []any{&result.Voters}, queryPollVoterCount, p.ID)
	}
	return result, err
}

// PollVoters returns for each option of a poll the names of the first voters who chose it, at most limit;
// a voter without a name has its sender.
func (r Reader) PollVoters(ctx context.Context, p *msg.StoredPoll, limit int) ([][]string, error) {
	voters := make([][]string, len(p.Poll.Options))
	err := r.each(ctx, func(scan scanner) (bool, error) {
		var option int
		var voter, name string
		err := scan(&option, &voter, &name)
		if err == nil && option >= 1 && option <= len(voters) {
			voters[option-1] = append(voters[option-1], cmp.Or(name, voter))
		}
		return err == nil, err
	}, queryPollVoters, p.ID, p.Poll.Multiple, limit)
	return voters, err
}

// VotesWaiting reports whether votes of a chat that were cast at the time before, in unix ms, or earlier
// are undecided.
func (r Reader) VotesWaiting(ctx context.Context, chatJID string, before int64) (bool, error) {
	return value[bool](ctx, r, queryVotesWaiting, chatJID, before)
}

// PutPoll stores an open poll whose outbound row is stored, and sets its id.
func (tx *Tx) PutPoll(p *msg.StoredPoll) error {
	options, _ := json.Marshal(p.Poll.Options) // plain strings: cannot fail
	id, err := tx.insert(insertPoll, p.MessageID, p.Folder, p.ChatJID, p.Topic, p.Poll.Question, string(options),
		p.Poll.Multiple,
		null(p.Poll.ClosesAt), p.CreatedAt)
	if err != nil {
		return fmt.Errorf("put poll: %w", err)
	}
	p.State, p.ID = msg.PollOpen, id
	return nil
}

// PutPollRef stores what a daemon's platform calls the poll of an outbound row.
func (tx *Tx) PutPollRef(daemon, ref string, messageID int64) error {
	return tx.exec(insertPollRef, daemon, ref, messageID)
}

// Vote counts a vote of a voter, cast at a time, in unix ms. It returns ErrStale if the poll no
// longer takes it.
func (tx *Tx) Vote(pollID int64, voter, name string, vote *msg.Vote, at int64) error {
	tx.note(failpoint.PutVote)
	poll, err := tx.Poll(uncancelled(), pollID)
	if err != nil {
		return err
	}
	if poll == nil || !poll.Takes(at) || !vote.Fits(len(poll.Poll.Options)) {
		return fmt.Errorf("vote in poll %d: %w", pollID, ErrStale)
	}
	var before string
	if _, err := tx.find([]any{&before}, queryPollVote, pollID, voter); err != nil {
		return err
	}
	chosen := vote.Apply(parseOptions(before))
	if len(chosen) == 0 {
		return tx.exec(deletePollVote, pollID, voter)
	}
	options, _ := json.Marshal(chosen) // plain numbers: cannot fail
	return tx.exec(putPollVote, pollID, voter, cut(cleanText(name), maxPollName), string(options), at)
}

// maxPollName bounds a voter's name, in bytes.
const maxPollName = 256

// ClosePoll closes an open poll at a time, in unix ms. Its message is closed by QueuePollEnd, once the
// votes that came before are counted. It returns ErrStale if the poll is closed.
func (tx *Tx) ClosePoll(id, at int64) error {
	n, err := tx.change(updateClosePoll, at, id)
	if err == nil && n == 0 {
		err = fmt.Errorf("close poll %d: %w", id, ErrStale)
	}
	return err
}

// EndPoll records that a poll is closed on its platform, and its result, nil to leave it unknown.
func (tx *Tx) EndPoll(id int64, result *msg.PollResult, at int64) error {
	var text any
	if result != nil {
		b, _ := json.Marshal(result) // plain numbers: cannot fail
		text = string(b)
	}
	return tx.exec(updateEndedPoll, at, text, id)
}

// QueuePollEnd ends a poll that is closed in the rows: it inserts the outbound row that closes the
// poll's message, and stores the result where the platform does not count itself. It returns false
// while the message is not delivered. Of a message that was never delivered, or that its platform no
// longer knows, only the rows are changed: the result is then what was voted so far. A poll that has
// ended already stays as it is.
func (tx *Tx) QueuePollEnd(id, now int64) (ended bool, err error) {
	poll, err := tx.Poll(uncancelled(), id)
	if err != nil || poll == nil || !poll.EndPending {
		return err == nil, err
	}
	m, err := tx.Message(uncancelled(), poll.MessageID)
	if err != nil || m == nil || m.OutState == msg.OutQueued || m.OutState == msg.OutSending {
		return false, err
	}
	tx.note(failpoint.EndPoll)
	content, stored := poll.Poll, (*msg.PollResult)(nil)
	if content.Result, err = tx.PollResult(uncancelled(), poll); err != nil {
		return false, err
	}
	lost, err := tx.Unreachable(uncancelled(), m)
	if err != nil {
		return false, err
	}
	if limits, _ := msg.PollLimitsOf(m.ChatJID); !limits.Native || lost != "" {
		stored = content.Result
	}
	if m.PlatformID != "" && lost == "" {
		_, _, err = tx.PutMessage(&msg.Message{
			ChatJID: m.ChatJID, Direction: msg.Out, Kind: msg.KindPoll, IsBot: true, Content: content.JSON(),
			TargetID: m.PlatformID,
			Topic:    m.Topic, ThreadID: m.ThreadID, Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice,
			OutState: OutStateOf(m.ChatJID),
		})
	}
	if err == nil {
		err = tx.EndPoll(id, stored, now)
	}
	return err == nil, err
}
