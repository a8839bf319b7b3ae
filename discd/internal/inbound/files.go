package inbound

import (
	"math"
	"path"
	"slices"
	"strings"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// isVoiceMessage is a flag of messages that are a recording.
const isVoiceMessage = 1 << 13

// Files are the files of a message and of those it forwards.
func Files(m *discordapi.Message) []discordapi.Attachment {
	files := slices.Concat(m.Attachments, uploads(m))
	for _, s := range m.Snapshots {
		if s.Message != nil {
			files = slices.Concat(files, s.Message.Attachments, uploads(s.Message))
		}
	}
	return files
}

// attachments returns the files of a message and of those it forwards, each once, and how many of them have to be
// downloaded.
func attachments(m *discordapi.Message) (all []msg.Attachment, pending int) {
	seen := map[string]bool{}
	for _, f := range Files(m) {
		if key := f.URL + " " + f.Filename; seen[key] {
			continue
		} else if f.URL != "" {
			seen[key] = true
		}
		problem := ""
		if f.URL == "" {
			problem = "Discord sent no URL of the file"
		}
		a := adapter.NewAttachment(fileName(f), f.ContentType, f.Size, f.URL, problem)
		a.Voice = m.Flags&isVoiceMessage != 0 ||
			f.Waveform != "" || f.Seconds > 0 && !strings.HasPrefix(f.ContentType, "video/")
		a.Duration = wholeSeconds(f.Seconds)
		all = append(all, a)
	}
	return all, adapter.Pending(all)
}

// fileName is the name that its sender gave to a file.
func fileName(f discordapi.Attachment) string {
	if f.Title == "" {
		return f.Filename
	}
	extension := path.Ext(f.Filename)
	return strings.TrimSuffix(f.Title, extension) + extension
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
