// Package wake pokes another daemon when there are new rows for it: one byte to its unix datagram
// socket, <run>/<daemon>.sock. A lost poke costs time, never data, because every reader also polls.
package wake

import (
	"fmt"
	"path/filepath"
)

// maxPath is the longest usable socket path in bytes: sun_path holds 108 with the final NUL.
const maxPath = 106

// socketPath is where a daemon listens.
func socketPath(runDir, daemon string) (string, error) {
	path := filepath.Join(runDir, daemon+".sock")
	if len(path) > maxPath {
		return "", fmt.Errorf("socket path %s has %d bytes, the maximum is %d: choose a shorter data folder",
			path, len(path), maxPath)
	}
	return path, nil
}
