package rows

import (
	"context"
	"encoding/json"
	"path"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// AttachmentPaths reads limit rows after an id and returns the paths of their
// attachments, and the id to continue after, 0 at the end.
func AttachmentPaths(ctx context.Context, r store.Reader, after int64, limit int) (paths []string, next int64,
	err error) {
	return attachmentPaths(ctx, r, `SELECT id, `+store.ShortAttachments+` FROM messages m WHERE m.id > ? ORDER BY m.id LIMIT ?+0`,
		after, limit)
}

// NeededFiles returns the paths of the attachments of open turns, and of messages that are not sent yet.
func NeededFiles(ctx context.Context, r store.Reader) (map[string]bool, error) {
	paths, _, err := attachmentPaths(ctx, r, `SELECT 0, `+store.ShortAttachments+
		` FROM turns t INDEXED BY turns_open CROSS JOIN messages m INDEXED BY messages_turn ON m.turn_id = t.id
			WHERE t.state IN ('queued', 'running') AND m.attachments IS NOT NULL
			UNION ALL SELECT 0, `+store.ShortAttachments+` FROM messages m INDEXED BY messages_outbox
			WHERE m.out_state IN ('queued', 'sending') AND m.attachments IS NOT NULL`)
	needed := map[string]bool{}
	for _, name := range paths {
		needed[path.Clean(name)] = true
	}
	return needed, err
}

// attachmentPaths reads rows of an id and a list of attachments. last is the last id.
func attachmentPaths(ctx context.Context, r store.Reader, query string, args ...any) (paths []string, last int64,
	err error) {
	err = r.Each(ctx, func(scan store.Scan) (bool, error) {
		var list *string
		if err := scan(&last, &list); err != nil {
			return false, err
		}
		var all []msg.Attachment
		if list != nil && json.Unmarshal([]byte(*list), &all) == nil {
			for _, a := range all {
				paths = append(paths, a.Path)
			}
		}
		return true, nil
	}, query, args...)
	return paths, last, err
}
