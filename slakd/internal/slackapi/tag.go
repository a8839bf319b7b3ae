package slackapi

import (
	"slices"
	"strconv"

	"github.com/slack-go/slack"
)

// tagType is the type of metadata of tags.
const tagType = "arizuko_part"

// Tag is hidden metadata of a message, by which it is found in the history of its channel.
type Tag struct {
	Row  int64
	Part int
	Salt int64 // distinguishes rows of two databases
}

// Metadata is the tag as Slack stores it.
func (t Tag) Metadata() slack.SlackMetadata {
	return slack.SlackMetadata{EventType: tagType, EventPayload: map[string]any{
		"row": strconv.FormatInt(t.Row, 10), "part": strconv.Itoa(t.Part), "salt": strconv.FormatInt(t.Salt, 10),
	}}
}

// Is reports whether a message has the tag.
func (t Tag) Is(m *Posted) bool {
	for key, value := range t.Metadata().EventPayload {
		if m.Metadata.EventPayload[key] != value {
			return false
		}
	}
	return m.Metadata.EventType == tagType
}

// HasFile reports whether a message has a file of a name and size, in bytes.
func (m *Posted) HasFile(name string, size int64) bool {
	return slices.ContainsFunc(m.Files, func(f PostedFile) bool { return f.Name == name && f.Size == size })
}
