package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// WantedFiles returns the oldest inbound rows of a platform whose attachments are
// wanted and still to be downloaded, at most limit.
func WantedFiles(ctx context.Context, r store.Reader, platform string, limit int) ([]*msg.Message, error) {
	return r.Messages(ctx, queryWantedFiles, platform, limit)
}
