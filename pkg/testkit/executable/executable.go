// Package executable writes programs that a test starts.
package executable

import (
	"os"
	"syscall"
	"testing"
)

// Write writes an executable file. No process is forked meanwhile: it would have the file open for writing until its
// own exec, and who starts the program before that is refused with "text file busy" (golang/go#22315).
func Write(t testing.TB, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Script writes a shell script without its first line.
func Script(t testing.TB, path, text string) {
	t.Helper()
	Write(t, path, []byte("#!/bin/sh\n"+text+"\n"))
}
