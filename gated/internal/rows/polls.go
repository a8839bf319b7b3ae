package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Poll returns a poll by id, nil if there is none.
func Poll(ctx context.Context, r store.Reader, id int64) (*msg.StoredPoll, error) {
	return store.First(factrows.ReadPolls(ctx, r, `SELECT `+factrows.PollColumns+` FROM polls p WHERE p.id = ?`, id))
}

// PollsOf returns a group's polls in a chat that have a state and ids below before, the newest first, at
// most limit.
func PollsOf(ctx context.Context, r store.Reader, chatJID, folder string, state msg.PollState, before int64,
	limit int) ([]*msg.StoredPoll, error) {
	const query = `SELECT ` + factrows.PollColumns + ` FROM polls p INDEXED BY polls_list
		WHERE p.chat_jid = ? AND p.folder = ? AND p.state = ? AND p.id < ? ORDER BY p.id DESC LIMIT ?+0`
	return factrows.ReadPolls(ctx, r, query, chatJID, folder, state, before, limit)
}

// PollsDue returns open polls whose time to close has come, the earliest first, at most limit.
func PollsDue(ctx context.Context, r store.Reader, now int64, limit int) ([]*msg.StoredPoll, error) {
	const query = `SELECT ` + factrows.PollColumns + ` FROM polls p INDEXED BY polls_due
		WHERE p.state = 'open' AND p.closes_at IS NOT NULL AND p.closes_at <= ? ORDER BY p.closes_at LIMIT ?+0`
	return factrows.ReadPolls(ctx, r, query, now, limit)
}

// PollsEnding returns closed polls after an id whose message on the platform is still to be closed,
// at most limit.
func PollsEnding(ctx context.Context, r store.Reader, after int64, limit int) ([]*msg.StoredPoll, error) {
	const query = `SELECT ` + factrows.PollColumns + ` FROM polls p INDEXED BY polls_ending
		WHERE p.end_pending = 1 AND p.id > ? ORDER BY p.id LIMIT ?+0`
	return factrows.ReadPolls(ctx, r, query, after, limit)
}

// PollsUndelivered returns open polls after an id whose message will never be delivered, at most limit.
func PollsUndelivered(ctx context.Context, r store.Reader, after int64, limit int) ([]*msg.StoredPoll, error) {
	const query = `SELECT ` + factrows.PollColumns +
		` FROM polls p INDEXED BY polls_open CROSS JOIN messages m ON m.id = p.message_id
		WHERE p.state = 'open' AND p.id > ? AND m.out_state IN ('failed', 'cancelled') ORDER BY p.id LIMIT ?+0`
	return factrows.ReadPolls(ctx, r, query, after, limit)
}

// PollVoters returns for each option of a poll the names of the first voters who chose it, at most limit;
// a voter without a name has its sender.
func PollVoters(ctx context.Context, r store.Reader, p *msg.StoredPoll, limit int) ([][]string, error) {
	const query = `SELECT option, voter, name FROM (SELECT o.value AS option, v.voter, v.name,
		row_number() OVER (PARTITION BY o.value ORDER BY v.at, v.voter) AS place ` + factrows.CountedOptions + `) p WHERE place <= ?3 ORDER BY option, place`
	voters := make([][]string, len(p.Poll.Options))
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var option int
		var voter, name string
		err := scan(&option, &voter, &name)
		if err == nil && option >= 1 && option <= len(voters) {
			voters[option-1] = append(voters[option-1], cmp.Or(name, voter))
		}
		return err == nil, err
	}, query, p.ID, p.Poll.Multiple, limit)
	return voters, err
}

// VotesWaiting reports whether votes of a chat that were cast at the time before, in unix ms, or earlier
// are undecided.
func VotesWaiting(ctx context.Context, r store.Reader, chatJID string, before int64) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_undecided
		WHERE direction = 'in' AND disposition IS NULL AND chat_jid = ? AND min(received_at, timestamp) <= ? AND verb IN ('vote', 'reaction'))`
	return store.Value[bool](ctx, r, query, chatJID, before)
}

// PutPoll stores an open poll whose outbound row is stored, and sets its id.
func PutPoll(tx *store.Tx, p *msg.StoredPoll) error {
	const query = `INSERT INTO polls (message_id, folder, chat_jid, topic, question, options, multiple, closes_at, state, created_at)
		VALUES (?,?,?,?,?,?,?,?,'open',?)`
	options, _ := json.Marshal(p.Poll.Options) // plain strings: cannot fail
	id, err := tx.Insert(query, p.MessageID, p.Folder, p.ChatJID, p.Topic, p.Poll.Question, string(options),
		p.Poll.Multiple, store.Null(p.Poll.ClosesAt), p.CreatedAt)
	if err != nil {
		return fmt.Errorf("put poll: %w", err)
	}
	p.State, p.ID = msg.PollOpen, id
	return nil
}

// ClosePoll closes an open poll at a time, in unix ms. Its message is closed by QueuePollEnd, once the
// votes that came before are counted. It returns ErrStale if the poll is closed.
func ClosePoll(tx *store.Tx, id, at int64) error {
	const query = `UPDATE polls SET state = 'closed', closed_at = ?, end_pending = 1 WHERE id = ? AND state = 'open'`
	return change(tx, "close poll", id, query, at, id)
}

// EndPoll records that a poll is closed on its platform, and its result, nil to leave it unknown.
func EndPoll(tx *store.Tx, id int64, result *msg.PollResult, at int64) error {
	const query = `UPDATE polls SET state = 'closed', closed_at = ifnull(closed_at, ?1), end_pending = 0,
		result = ifnull(?2, result) WHERE id = ?3`
	var text any
	if result != nil {
		b, _ := json.Marshal(result) // plain numbers: cannot fail
		text = string(b)
	}
	return tx.Exec(query, at, text, id)
}

// QueuePollEnd ends a poll that is closed in the rows: it inserts the outbound row that closes the
// poll's message, and stores the result where the platform does not count itself. It returns false
// while the message is not delivered. Of a message that was never delivered, or that its platform no
// longer knows, only the rows are changed: the result is then that of the votes so far. A poll that has
// ended already stays as it is.
func QueuePollEnd(tx *store.Tx, id, now int64) (ended bool, err error) {
	poll, err := Poll(store.Uncancelled(), tx.Reader, id)
	if err != nil || poll == nil || !poll.EndPending {
		return err == nil, err
	}
	m, err := tx.Message(store.Uncancelled(), poll.MessageID)
	if err != nil || m == nil || m.OutState == msg.OutQueued || m.OutState == msg.OutSending {
		return false, err
	}
	tx.Note(failpoint.EndPoll)
	content, stored := poll.Poll, (*msg.PollResult)(nil)
	if content.Result, err = factrows.PollResult(store.Uncancelled(), tx.Reader, poll); err != nil {
		return false, err
	}
	lost, err := tx.Unreachable(store.Uncancelled(), m)
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
			OutState: msg.OutStateOf(m.ChatJID),
		})
	}
	if err == nil {
		err = EndPoll(tx, id, stored, now)
	}
	return err == nil, err
}

// Vote counts a vote of a voter, cast at a time, in unix ms. It returns ErrStale if the poll no
// longer takes it.
func Vote(tx *store.Tx, pollID int64, voter, name string, vote *msg.Vote, at int64) error {
	const query = `INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (?,?,?,?,?)
		ON CONFLICT (poll_id, voter) DO UPDATE SET name = excluded.name, options = excluded.options, at = excluded.at`
	tx.Note(failpoint.PutVote)
	poll, err := Poll(store.Uncancelled(), tx.Reader, pollID)
	if err != nil {
		return err
	}
	if poll == nil || !poll.Takes(at) || !vote.Fits(len(poll.Poll.Options)) {
		return fmt.Errorf("vote in poll %d: %w", pollID, store.ErrStale)
	}
	var before string
	if _, err := tx.Find([]any{&before}, `SELECT options FROM poll_votes WHERE poll_id = ? AND voter = ?`, pollID, voter); err != nil {
		return err
	}
	var options []int
	if json.Unmarshal([]byte(before), &options) != nil { // JSON of another shape counts as none
		options = nil
	}
	chosen := vote.Apply(options)
	if len(chosen) == 0 {
		return tx.Exec(`DELETE FROM poll_votes WHERE poll_id = ? AND voter = ?`, pollID, voter)
	}
	list, _ := json.Marshal(chosen) // plain numbers: cannot fail
	return tx.Exec(query, pollID, voter, store.Cut(store.CleanText(name), maxPollName), string(list), at)
}

// maxPollName bounds a voter's name, in bytes.
const maxPollName = 256
