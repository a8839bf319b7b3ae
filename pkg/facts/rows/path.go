package rows

import (
	"context"
	"slices"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// AsksOpenAt returns the questions that were open at a time, in unix ms, that are shown in a thread of a chat,
// among the chat's 1000 messages before a row, oldest first, at most 20.
func AsksOpenAt(ctx context.Context, r store.Reader, chatJID, threadID string, before, at int64) ([]*msg.Ask, error) {
	// Those that a text without a target may have answered at a time: they stand in the thread above it.
	return r.ReadAsks(ctx, `SELECT `+store.AskColumns+` FROM (SELECT m.id, m.thread_id FROM messages m INDEXED BY messages_chat
			WHERE m.chat_jid = ?1 AND m.id < ?3 ORDER BY m.id DESC LIMIT 1000) m CROSS JOIN asks a INDEXED BY asks_message ON a.message_id = m.id
		WHERE m.thread_id = ?2 AND a.created_at <= ?4 AND ifnull(a.ended_at, ?4) >= ?4 ORDER BY a.id LIMIT 20`,
		chatJID, threadID, before, at)
}

// Presses returns the rows of buttons that were pressed below a message, by its platform id, oldest first, at most 20.
func Presses(ctx context.Context, r store.Reader, chatJID, platformID string) ([]*msg.Message, error) {
	return r.Messages(ctx, `SELECT `+store.MessageColumns+` FROM messages m INDEXED BY messages_target
		WHERE m.chat_jid = ? AND m.target_id = ? AND m.direction = 'in' AND m.verb = 'answer' ORDER BY m.id LIMIT 20`,
		chatJID, platformID)
}

// BroadcastOf returns the broadcast that made a row, who sent it, and to how many chats; 0 if none did. It reads all
// broadcasts.
func BroadcastOf(ctx context.Context, r store.Reader, message int64) (id int64, by string, chats int, err error) {
	// For operators who ask about one message: there are few broadcasts.
	_, err = r.Get(ctx, []any{&id, &by, &chats}, `SELECT id, created_by, json_array_length(chats) FROM broadcasts
		WHERE EXISTS (SELECT 1 FROM json_each(message_ids) WHERE CAST(value AS INTEGER) = ?)`, message)
	return id, by, chats, err
}

// RunResult is a run and how it ended.
type RunResult struct {
	msg.Run
	Result string // "ok", "error", or the reason why the session was taken away; "" while it runs
	Error  string
}

// RunsDuring returns the newest runs of a folder and topic that lived at some
// time between from and until, at most limit, oldest first.
func RunsDuring(ctx context.Context, r store.Reader, folder, topic string, from, until int64, limit int) ([]*RunResult,
	error) {
	// Of the runs that began after the turn all are looked at.
	all, err := store.All(ctx, r, func(scan store.Scan) (*RunResult, error) {
		var result, problem string
		run, err := ScanRun(func(dest ...any) error { return scan(append(dest, &result, &problem)...) })
		return &RunResult{*run, result, problem}, err
	}, `SELECT `+RunColumns+`, l.result, l.error FROM session_log l INDEXED BY session_log_topic
		JOIN runs r ON r.id = l.run_id WHERE l.folder = ?1 AND l.topic = ?2 AND r.started_at <= ?4
		AND ifnull(r.ended_at, ?4) >= ?3 ORDER BY l.id DESC LIMIT ?5+0`, folder, topic, from, until, limit)
	slices.Reverse(all)
	return all, err
}

// OwnReplies returns the outbound rows that answer a row outside any turn, such
// as a command's answer: those of the next 10,000 ids.
func OwnReplies(ctx context.Context, r store.Reader, m *msg.Message) ([]*msg.Message, error) {
	return r.Messages(ctx, `SELECT `+store.MessageColumns+` FROM messages m INDEXED BY messages_chat
		WHERE m.chat_jid = ?1 AND m.id > ?2 AND m.id <= ?2 + 10000 AND m.reply_to_id = ?3
		AND m.direction = 'out' AND m.turn_id IS NULL ORDER BY m.id`, m.ChatJID, m.ID, m.PlatformID)
}

// Delegated returns the turns delegated below a root turn, oldest first.
func Delegated(ctx context.Context, r store.Reader, rootTurnID int64) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, `SELECT `+store.TurnColumns+
		` FROM turns t WHERE t.root_turn_id = ? AND t.kind = 'delegated' ORDER BY t.id`, rootTurnID)
}
