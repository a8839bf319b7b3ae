package agentproto

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of the parts of an agent's frames that gated stores. A page shows up to 200 messages
// of a chat at once, so a message has to be far smaller than a frame may be.
const (
	// MaxFrames is the number of frames that a turn may have.
	MaxFrames = 100
	// MaxResult is the size limit of a result in bytes, as it is stored. Escaped it
	// always fits into a frame: JSON takes up to six bytes for one.
	MaxResult = 128 << 10
	// MaxResults is the size limit of all results of a turn in bytes.
	MaxResults = 1 << 20
	// MaxParts is the size limit of the results before a turn's last frame, in bytes: that
	// one has room for a whole result. One frame of MaxFrames is kept for it, too.
	MaxParts = MaxResults - MaxResult
	// MaxTurnIDs is the number of turns that one frame may answer. A run has fewer unanswered ones.
	MaxTurnIDs = 64
	// MaxSessionID is the size limit of a session id in bytes.
	MaxSessionID = 256
	// MaxError is the size limit of an error's text in bytes.
	MaxError = 4 << 10
)

// RewindSuffix ends the session id of a start line if turns that ended without an answer since are taken back. Only ids
// with an "@" get it: see docs/agent-protocol.md.
const RewindSuffix = "!"

// maxRemark is more than the remark of Cut takes, in bytes.
const maxRemark = 128

// Cut shortens a text to at most limit bytes, at the end of a line or else of a
// character, and appends a remark that says how much is missing. limit is at least 1 KiB.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	kept := Truncate(text, limit-maxRemark)
	if end := strings.LastIndexByte(kept, '\n'); end >= len(kept)*15/16 { // short lines only
		kept = kept[:end]
	}
	missing := (len(text) - len(kept) + 1<<10 - 1) >> 10
	return kept + closing(kept) + fmt.Sprintf("\n\n(This answer is too long and is cut here. Missing: %d KiB.)",
		missing)
}

// maxFence is the longest code fence that is closed, in bytes.
const maxFence = 32

// closing is the line that closes a markdown code block that text leaves open, "" for none.
func closing(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		fence, rest := fenceOf(line)
		switch {
		case fence == "":
		case open == "":
			open = fence
		case fence[0] == open[0] && len(fence) >= len(open) && strings.TrimSpace(rest) == "":
			open = ""
		}
	}
	if open == "" || len(open) > maxFence {
		return ""
	}
	return "\n" + open
}

// fenceOf returns the code fence that a line begins with, "" for none, and the rest of the line.
func fenceOf(line string) (fence, rest string) {
	text := strings.TrimLeft(line, " ")
	if len(line)-len(text) > 3 {
		return "", ""
	}
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, mark)
		if n := len(text) - len(rest); n >= 3 {
			return text[:n], rest
		}
	}
	return "", ""
}

// Truncate cuts s to at most n bytes without splitting a character.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
