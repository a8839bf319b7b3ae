package msg

import (
	"errors"
	"fmt"
	"strings"
)

// maxFolderDepth is how many segments a folder may have.
const maxFolderDepth = 8

// ValidFolder returns nil if folder can be the name of a group. A folder is one to
// eight segments joined by "/", as in "acme/eng/oncall"; a segment is made of
// a-z, 0-9, "_" and "-" and starts with a letter or a digit, so a folder is
// always a safe relative path.
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
	return nil
}

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
