package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	PollColumns = `p.id, p.message_id, p.folder, p.chat_jid, p.topic, p.question, p.options, p.multiple, ifnull(p.closes_at, 0),
		p.state, p.created_at, ifnull(p.closed_at, 0), p.end_pending, p.result`
	// Options that count of a poll's votes: of several in a poll that takes one, the last.
	CountedOptions = `FROM poll_votes v CROSS JOIN json_each(v.options) o ON TRUE WHERE v.poll_id = ?1 AND json_type(v.options) = 'array' AND o.type = 'integer'
		AND (?2 OR o.key = json_array_length(v.options) - 1)`
)

func scanPoll(scan store.Scan) (*msg.StoredPoll, error) {
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

// ReadPolls runs a query of PollColumns.
func ReadPolls(ctx context.Context, r store.Reader, query string, args ...any) ([]*msg.StoredPoll, error) {
	return store.All(ctx, r, scanPoll, query, args...)
}

// PollOfMessage returns the poll that an outbound row is, nil if it is none.
func PollOfMessage(ctx context.Context, r store.Reader, messageID int64) (*msg.StoredPoll, error) {
	return store.First(ReadPolls(ctx, r, `SELECT `+PollColumns+` FROM polls p WHERE p.message_id = ?`, messageID))
}

// PollVotes returns the choice of each voter in a poll, in no order.
func PollVotes(ctx context.Context, r store.Reader, pollID int64) ([]msg.PollVote, error) {
	return store.All(ctx, r, func(scan store.Scan) (v msg.PollVote, err error) {
		var options string
		err = scan(&v.Voter, &v.Name, &options, &v.At)
		if json.Unmarshal([]byte(options), &v.Options) != nil { // JSON of another shape counts as none
			v.Options = nil
		}
		return v, err
	}, `SELECT voter, name, options, at FROM poll_votes WHERE poll_id = ?`, pollID)
}

// PollVotesStored returns by voter the choice of each in the poll of an outbound row once all votes that are
// stored with the poll as their target are counted. At is 0 for votes that are not counted yet.
func PollVotesStored(ctx context.Context, r store.Reader, pollID int64, m *msg.Message) (map[string]msg.PollVote,
	error) {
	type row struct{ sender, name, content string }
	// The rows are read before the counts: one that is counted in between is counted twice, which changes nothing.
	rows, err := store.All(ctx, r, func(scan store.Scan) (v row, err error) {
		return v,
			scan(&v.sender, &v.name, &v.content)
	},
		`SELECT sender, sender_name, content FROM messages INDEXED BY messages_target
			WHERE chat_jid = ? AND target_id = ? AND direction = 'in' AND verb = 'vote' ORDER BY id`,
		m.ChatJID, m.PlatformID)
	if err != nil {
		return nil, err
	}
	counted, err := PollVotes(ctx, r, pollID)
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
