package events

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/slackapi"
)

const (
	// contextTimeout bounds the call for the posts before a live message that addresses the bot: with the
	// names it has to fit into the time that Slack waits. missedTimeout is for messages of the history.
	contextTimeout = time.Second
	missedTimeout  = 10 * time.Second
	// maxContext bounds the replies before a message that are kept, besides the thread's first post.
	maxContext = 50
)

// withThread adds the earlier posts of a thread to a message that addresses the bot there, if the
// thread's first post is unknown: the bot was not in the channel then, or has never seen it. A message whose
// thread cannot be read goes without.
func (l *Listener) withThread(ctx context.Context, in adapter.Inbound, names inbound.Names,
	timeout time.Duration) adapter.Inbound {
	if len(in.Messages) != 1 || !in.Messages[0].Addressed || in.Messages[0].ThreadID == "" ||
		in.Messages[0].TargetID != "" {
		return in
	}
	row := in.Messages[0]
	pane, err := rows.Thread(ctx, l.Store.Reader, row.ChatJID, row.ThreadID)
	if err != nil || pane != nil {
		return in
	}
	for _, id := range []string{row.ThreadID, row.PlatformID} { // a stored one has its context
		known, err := l.Store.MessageByPlatformID(ctx, row.ChatJID, id)
		if err != nil || known != nil {
			return in
		}
	}
	thread := store.Lane{ChatJID: row.ChatJID, ThreadID: row.ThreadID}
	if of := l.rootless.Get(thread); of != "" && of != row.PlatformID {
		return in
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, channel := msg.SplitJID(row.ChatJID)
	before, whole := l.repliesBefore(ctx, channel, row.ThreadID, row.PlatformID)
	hasRoot := false
	for _, m := range before {
		if quoted := inbound.Quoted(m, *l.me.Load(), names); quoted != nil {
			in.Quoted = append(in.Quoted, quoted)
			hasRoot = hasRoot || m.TS == row.ThreadID
		}
	}
	if whole && !hasRoot {
		l.rootless.Put(thread, row.PlatformID)
	}
	return in
}

// repliesBefore are the first post of a thread and the last replies before a message, as far as they can be read
// before ctx ends; whole says whether all were. Slack sends the oldest replies first, and the first post on each page.
func (l *Listener) repliesBefore(ctx context.Context, channel, thread, ts string) (all []*inbound.Message, whole bool) {
	for cursor := ""; ; {
		page, err := l.API.Replies(ctx, channel, thread, slackapi.Window{Latest: ts}, cursor)
		if err != nil {
			return all, slackapi.Failure(err).Class == msg.Permanent // there is no more to read
		}
		for _, raw := range page.Messages {
			m := &inbound.Message{}
			if json.Unmarshal(raw, m) != nil || m.TS == ts || m.TS == thread && cursor != "" {
				continue
			}
			m.Channel = channel
			all = append(all, m)
		}
		if extra := len(all) - 1 - maxContext; extra > 0 {
			all = slices.Delete(all, 1, 1+extra)
		}
		if cursor = page.Next; cursor == "" || len(page.Messages) == 0 {
			return all, true
		}
	}
}
