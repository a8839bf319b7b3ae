package adapter

import (
	"cmp"

	"arizuko/pkg/msg"
)

// Actor is the sender of an event: a user, a bot, or a chat that acts as itself.
type Actor struct {
	JID, Name string
	Bot       bool
}

// Body is the content of a message.
type Body struct {
	Content   string
	Addressed bool // the text mentions the bot
	Empty     bool // the message is no user's, or has neither text nor a file: it makes no row
}

// UnixMilli returns a platform's time, in unix milliseconds, if it is valid. A missing or invalid time
// gives 0, which the shell replaces by the time of arrival.
func UnixMilli(ms int64) int64 {
	const year9999 = 253402300800_000
	if ms <= 0 || ms > year9999 {
		return 0
	}
	return ms
}

// NewAttachment makes the record of a file that a platform sent, with defaults for a missing name or type.
// A file with a problem is not downloaded.
func NewAttachment(name, mime string, size int64, ref, problem string) msg.Attachment {
	a := msg.Attachment{
		Name: cmp.Or(name, "file"), MIME: cmp.Or(mime, "application/octet-stream"), Size: max(size, 0), Ref: ref,
		Error: problem,
	}
	if problem != "" {
		a.Ref = ""
	}
	return a
}

// Pending counts the files that must be downloaded.
func Pending(files []msg.Attachment) (count int) {
	for i := range files {
		if files[i].Error == "" {
			count++
		}
	}
	return count
}
