package msg

import "strings"

// Transcript is what a program heard in an audio file. It is empty while that is still to come.
type Transcript struct {
	Text  string
	Error string // why there is none
}

const (
	// TranscriptLate is the Error of a transcript that was not there when its turn started.
	TranscriptLate = "it was not transcribed in time"
	// CutMark ends a transcript that was cut.
	CutMark = "…"
)

// IsAudio reports whether a file is a voice note or other sound, as its platform or browser said.
func (a *Attachment) IsAudio() bool {
	return strings.HasPrefix(a.MIME, "audio/") || a.MIME == "application/ogg"
}

// HasAudio reports whether a message has an audio file.
func (m *Message) HasAudio() bool {
	for i := range m.Attachments {
		if m.Attachments[i].IsAudio() {
			return true
		}
	}
	return false
}
