// Package groupfiles copies files between the folders of groups and the media folder: what users
// send into the inbox of a group, and what agents send out of its folder. What agents do to their
// folder meanwhile leads nowhere else.
package groupfiles

import "arizuko/gated/internal/runtime"

// mediaFolder holds the files of messages, inside the data folder.
const mediaFolder = "media"

// Files copies files. It is safe for concurrent use.
type Files struct {
	Data string // the data folder
	// Dir returns the folder of a group, which it makes unless it exists, and the user of
	// the group's agents, zero if they run as the user of gated.
	Dir func(folder string) (dir string, user runtime.User, err error)
}
