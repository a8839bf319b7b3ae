// Package groupfiles copies files between the folders of groups and the media folder: files
// of users into the inbox of a group, and files of agents out of its folder. No change that an
// agent makes to its folder meanwhile leads elsewhere.
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

	// Usage is that of the media folder, and Log has its refusals; a nil Usage refuses nothing.
	Usage *disk.Usage
	Log   *slog.Logger

	taking singleflight.Group // by group and name in its inbox
}

// MediaFolder is the folder of the files of messages.
func (f *Files) MediaFolder() string { return filepath.Join(f.Data, mediaFolder) }
