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
	return r.ReadAsks(ctx, queryAsksOpenAt, chatJID, threadID, before, at)
}

// Presses returns the rows of buttons that were pressed below a message, by its platform id, oldest first, at most 20.
func Presses(ctx context.Context, r store.Reader, chatJID, platformID string) ([]*msg.Message, error) {
	return r.Messages(ctx, queryPresses, chatJID, platformID)
}

// BroadcastOf returns the broadcast that made a row, who sent it, and to how many chats; 0 if none did. It reads all
// broadcasts.
func BroadcastOf(ctx context.Context, r store.Reader, message int64) (id int64, by string, chats int, err error) {
	_, err = r.Get(ctx, []any{&id, &by, &chats}, queryBroadcastOf, message)
	return id, by, chats, err
}

// RunResult is a run and how it ended.
type RunResult struct {
	msg.Run
	Result string // "ok", "error", or what took the session away; "" while it runs
	Error  string
}

// RunsDuring returns the newest runs of a folder and topic that lived at some
// time between from and until, at most limit, oldest first.
func RunsDuring(ctx context.Context, r store.Reader, folder, topic string, from, until int64, limit int) ([]*RunResult,
	error) {
	all, err := store.All(ctx, r, func(scan store.Scan) (*RunResult, error) {
		var result, problem string
		run, err := store.ScanRun(func(dest ...any) error { return scan(append(dest, &result, &problem)...) })
		return &RunResult{*run, result, problem}, err
	}, queryRunsDuring, folder, topic, from, until, limit)
	slices.Reverse(all)
	return all, err
}

// OwnReplies returns the outbound rows that answer a row outside any turn, such
// as a command's answer: those of the next 10,000 ids.
func OwnReplies(ctx context.Context, r store.Reader, m *msg.Message) ([]*msg.Message, error) {
	return r.Messages(ctx, queryOwnReplies, m.ChatJID, m.ID, m.PlatformID)
}

// Delegated returns the turns delegated below a root turn, oldest first.
func Delegated(ctx context.Context, r store.Reader, rootTurnID int64) ([]*msg.Turn, error) {
	return r.ReadTurns(ctx, queryDelegated, rootTurnID)
}
