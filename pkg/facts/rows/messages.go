package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Change is the last edit or deletion of a message.
type Change struct {
	Deleted bool
	Content string // after the edit
}

// LastChange returns the last change of a row up to a row id, nil if there is none.
func LastChange(ctx context.Context, r store.Reader, id, upto int64) (*Change, error) {
	var c Change
	found, err := r.Get(ctx, []any{&c.Deleted, &c.Content}, `SELECT e.verb = 'delete' OR e.kind = 'delete', CASE WHEN octet_length(e.content) <= 1048576 THEN e.content
		ELSE substr(e.content, 1, 262144) END FROM messages m JOIN messages e ON e.id = `+store.LastChange+` WHERE m.id = ?1`,
		id, upto)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}

// CopyOf is the last copy of a row that was sent, or decided, in its place; 0 if there is none.
func CopyOf(ctx context.Context, r store.Reader, id int64) (int64, error) {
	return store.Value[int64](ctx, r, `SELECT ifnull(max(n.id), 0) FROM messages n INDEXED BY messages_derived JOIN messages m ON m.id = n.derived_from
		WHERE n.derived_from = ? AND `+store.IsCopy, id)
}

// FillTranscripts adds their transcripts to the audio files of messages.
func FillTranscripts(ctx context.Context, r store.Reader, rows []*msg.Message) error {
	for _, m := range rows {
		if !m.HasAudio() {
			continue
		}
		err := r.Each(ctx, func(scan store.Scan) (bool, error) {
			var n int
			t := &msg.Transcript{}
			if err := scan(&n, &t.Text, &t.Error); err != nil {
				return false, err
			}
			if n <= len(m.Attachments) {
				m.Attachments[n-1].Transcript = t
			}
			return true, nil
		}, `SELECT n, text, error FROM transcripts WHERE message_id = ? ORDER BY n`, m.ID)
		if err != nil {
			return fmt.Errorf("transcripts of message %d: %w", m.ID, err)
		}
	}
	return nil
}

// PollResult counts the votes of a poll.
func PollResult(ctx context.Context, r store.Reader, p *msg.StoredPoll) (*msg.PollResult, error) {
	result := &msg.PollResult{Counts: make([]int, len(p.Poll.Options))}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var option, votes int
		err := scan(&option, &votes)
		if err == nil && option >= 1 && option <= len(result.Counts) {
			result.Counts[option-1] = votes
		}
		return err == nil, err
	}, `SELECT o.value, count(*) `+CountedOptions+` GROUP BY o.value`, p.ID, p.Poll.Multiple)
	if err == nil {
		_, err = r.Get(ctx, []any{&result.Voters}, `SELECT count(*) FROM poll_votes WHERE poll_id = ? AND json_array_length(options) > 0`,
			p.ID)
	}
	return result, err
}

// TopicOfThread is the named topic a platform thread is bound to, "" for none.
func TopicOfThread(ctx context.Context, r store.Reader, chatJID, threadID string) (string, error) {
	return store.Value[string](ctx, r, `SELECT topic FROM topic_threads WHERE chat_jid = ? AND thread_id = ?`,
		chatJID, threadID)
}

// DemoAgent reports whether the demo agent answers where a group names no other one.
func DemoAgent(ctx context.Context, r store.Reader) (bool, error) {
	value, err := store.Value[int64](ctx, r, `SELECT value FROM router_state WHERE key = ?`, store.StateDemoAgent)
	return value == 1, err
}
