package rows

import (
	"context"

	"arizuko/pkg/store"
)

// FolderUsed reports whether a group has the folder, or had it and may have left files there.
func FolderUsed(ctx context.Context, r store.Reader, folder string) (bool, error) {
	return store.Value[bool](ctx, r, queryFolderUsed, folder)
}
