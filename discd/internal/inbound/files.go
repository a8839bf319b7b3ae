package inbound

import (
	"math"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// attachments returns the files of a message and of those it forwards, and how many of them have to be
// downloaded.
func attachments(m *discordapi.Message) (all []msg.Attachment, pending int) {
	files := m.Attachments
	for _, s := range m.Snapshots {
		if s.Message != nil {
			files = append(files[:len(files):len(files)], s.Message.Attachments...)
		}
	}
	for _, f := range files {
		problem := ""
		if f.URL == "" {
			problem = "Discord sent no URL of the file"
		}
		a := adapter.NewAttachment(f.Filename, f.ContentType, f.Size, f.URL, problem)
		a.Duration = wholeSeconds(f.Seconds)
		all = append(all, a)
	}
	return all, adapter.Pending(all)
}

// wholeSeconds rounds a duration up, so that a short recording does not count as unknown.
func wholeSeconds(seconds float64) int64 {
	const maxSeconds = 7 * 24 * 3600
	if seconds > 0 && seconds < maxSeconds {
		return int64(math.Ceil(seconds))
	}
	return 0
}

func hasFile(m *discordapi.Message) bool {
	all, _ := attachments(m)
	return len(all) > 0
}
