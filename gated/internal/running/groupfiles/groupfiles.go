// Package groupfiles copies files between the folders of groups and the media folder: what users
// send into the inbox of a group, and what agents send out of its folder. What agents do to their
// folder meanwhile leads nowhere else.
package groupfiles

import (
	"log/slog"
	"path/filepath"

	"golang.org/x/sync/singleflight"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/disk"
)

// mediaFolder holds the files of messages, inside the data folder.
const mediaFolder = "media"

// Files copies files. It is safe for concurrent use, and one serves all groups: it makes a copy once,
// however many callers want it at a time.
type Files struct {
	Data string // the data folder
	// Dir returns the folder of a group, which it makes unless it exists, and the user of
	// the group's agents, zero if they run as the user of gated.
	Dir func(folder string) (dir string, user runtime.User, err error)

	// Usage is that of the media folder, and Log has what it refuses; a nil Usage refuses nothing.
	Usage *disk.Usage
	Log   *slog.Logger

	taking singleflight.Group // by group and name in its inbox
}

// MediaFolder is the folder of the files of messages.
func (f *Files) MediaFolder() string { return filepath.Join(f.Data, mediaFolder) }
