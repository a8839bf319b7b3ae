package msg

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxFolderDepth is how many segments a folder may have.
	maxFolderDepth = 8
	// maxFolderBytes leaves room for a suffix: a file name may have 255 bytes, and a folder is
	// one file name, see DirName.
	maxFolderBytes = 200
)

// ValidFolder returns nil if folder can be the name of a group. A folder is one to
// eight segments joined by "/", as in "acme/eng/oncall"; a segment is made of
// a-z, 0-9, "_" and "-" and starts with a letter or a digit, so a folder is
// always a safe relative path. It has at most 200 bytes.
func ValidFolder(folder string) error {
	if folder == "" {
		return errors.New("folder is empty")
	}
	depth := 0
	for segment := range strings.SplitSeq(folder, "/") {
		if depth++; depth > maxFolderDepth {
			return fmt.Errorf("folder %.80q is more than %d segments deep", folder, maxFolderDepth)
		}
		if !validSegment(segment) {
			return fmt.Errorf("folder %.80q: segment %.80q must be a-z, 0-9, _ or -, starting with a letter or digit",
				folder, segment)
		}
	}
	if len(folder) > maxFolderBytes {
		return fmt.Errorf("folder %.80q is longer than %d bytes", folder, maxFolderBytes)
	}
	return nil
}

// DirName is the name of a group's folder inside <data>/groups: "acme+eng" for
// acme/eng. Folders lie side by side there, so that no group's folder is inside
// another's. Different folders have different names: no valid folder has a "+".
func DirName(folder string) string { return strings.ReplaceAll(folder, "/", "+") }

// Parent is folder without its last segment, "" for a world.
func Parent(folder string) string {
	return folder[:max(strings.LastIndexByte(folder, '/'), 0)]
}

// World is the first segment of folder.
func World(folder string) string {
	world, _, _ := strings.Cut(folder, "/")
	return world
}

// Within reports whether folder is ancestor or lies below it. Nothing is within
// the empty folder, so an unset ancestor gives no access to everything.
func Within(folder, ancestor string) bool {
	below, ok := strings.CutPrefix(folder, ancestor)
	return ok && ancestor != "" && (below == "" || below[0] == '/')
}

func validSegment(segment string) bool {
	for i, c := range []byte(segment) {
		letterOrDigit := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !letterOrDigit && (i == 0 || c != '_' && c != '-') {
			return false
		}
	}
	return segment != ""
}
