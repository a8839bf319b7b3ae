package slackapi

import (
	"slices"
	"strconv"

	"github.com/slack-go/slack"
)

// tagType is the kind of metadata that tags are.
const tagType = "arizuko_part"

// Tag is written on a message, where nobody sees it, to tell it from all others in the history of
// its channel.
type Tag struct {
	Row  int64
	Part int
	Salt int64 // tells rows of two databases apart
}

// Metadata is the tag as Slack keeps it.
func (t Tag) Metadata() slack.SlackMetadata {
	return slack.SlackMetadata{EventType: tagType, EventPayload: map[string]any{
		"row": strconv.FormatInt(t.Row, 10), "part": strconv.Itoa(t.Part), "salt": strconv.FormatInt(t.Salt, 10),
	}}
}

// Is says whether a message bears the tag.
func (t Tag) Is(m *slack.Message) bool {
	for key, value := range t.Metadata().EventPayload {
		if m.Metadata.EventPayload[key] != value {
			return false
		}
	}
	return m.Metadata.EventType == tagType
}

// HasFile says whether a message is a user's and brings a file of that name and size, in bytes.
func HasFile(m *slack.Message, user, name string, size int64) bool {
	return m.User == user && slices.ContainsFunc(m.Files, func(f slack.File) bool { return f.Name == name && int64(f.Size) == size })
}
