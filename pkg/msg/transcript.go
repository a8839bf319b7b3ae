package msg

import (
	"path"
	"slices"
	"strings"
)

// Transcript is the text that a program heard in an audio file, empty until then.
type Transcript struct {
	Text  string
	Error string // why there is none
}

const (
	// TranscriptLate is the Error of a transcript that was not there when its turn started.
	TranscriptLate = "it was not transcribed in time"
	// TranscriptSilent is the Error of a recording without speech.
	TranscriptSilent = "no words were heard in it"
	// CutMark ends a transcript that was cut.
	CutMark = "…"
)

// IsAudio reports whether a file is a voice note or other sound, as its platform or browser said. Types are often
// wrong: m4a files are called videos, and many files have no type.
func (a *Attachment) IsAudio() bool {
	kind, _, _ := strings.Cut(strings.ToLower(a.MIME), ";")
	kind = strings.TrimSpace(kind)
	switch top, _, _ := strings.Cut(kind, "/"); {
	case a.Voice, top == "audio", kind == "application/ogg", kind == "application/x-ogg":
		return true
	case top == "video", kind == "", strings.HasSuffix(kind, "/octet-stream"):
		return AudioExtension(a.Name) != ""
	}
	return false
}

// AudioExtension is the extension of a file name, in lower case, if files with it have sound and no pictures, else "".
func AudioExtension(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if slices.Contains([]string{".aac", ".aiff", ".amr", ".caf", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus",
		".wav", ".weba", ".wma"}, ext) {
		return ext
	}
	return ""
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
