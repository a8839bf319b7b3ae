// Package wake tells another daemon that there is something new in the database: one byte to
// its unix datagram socket, <run>/<daemon>.sock. A lost poke costs time, never data, because
// every reader also looks by itself now and then.
package wake

import (
	"fmt"
	"path/filepath"
)

// maxPath is the longest usable socket path: sun_path holds 108 bytes with its final NUL.
const maxPath = 106

// socketPath is where a daemon listens.
func socketPath(runDir, daemon string) (string, error) {
	path := filepath.Join(runDir, daemon+".sock")
	if len(path) > maxPath {
		return "", fmt.Errorf("socket path %s has %d bytes, at most %d are possible: choose a shorter data folder",
			path, len(path), maxPath)
	}
	return path, nil
}
