package store

import (
	"context"

	"arizuko/pkg/msg"
)

// Posts returns the rows of a chat whose platform ids are from the first id on and before the second, in the order of
// their bytes, at most limit. Where ids begin with the time, as on Slack, they are those of a span of time with all
// changes of them.
func (r Reader) Posts(ctx context.Context, chatJID, from, before string, limit int) ([]*msg.Message, error) {
	return r.messages(ctx, queryPosts, chatJID, from, before, limit)
}

// ThreadPosts returns the platform ids of the newest posts in a thread, the newest first, at most limit.
func (r Reader) ThreadPosts(ctx context.Context, chatJID, threadID string, limit int) ([]string, error) {
	return collect(ctx, r, func(scan scanner) (id string, err error) {
		err = scan(&id)
		return id, err
	}, queryThreadPosts, chatJID, threadID, limit)
}
