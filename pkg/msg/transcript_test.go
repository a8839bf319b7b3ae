package msg

import "testing"

func TestAttachment_IsAudio(t *testing.T) {
	for _, c := range []struct {
		file Attachment
		want bool
	}{
		{Attachment{MIME: "audio/ogg"}, true},
		{Attachment{MIME: "Audio/WebM; codecs=opus"}, true},
		{Attachment{MIME: "application/ogg"}, true},
		{Attachment{MIME: "video/mp4", Voice: true}, true},
		{Attachment{MIME: "video/mp4", Name: "New Recording.M4A"}, true},
		{Attachment{MIME: "application/octet-stream", Name: "a.opus"}, true},
		{Attachment{MIME: "binary/octet-stream", Name: "a.mp3"}, true},
		{Attachment{Name: "a.oga"}, true},
		{Attachment{MIME: "video/mp4", Name: "a.mp4"}, false},
		{Attachment{MIME: "application/octet-stream", Name: "ogg"}, false},
		{Attachment{MIME: "text/plain", Name: "a.mp3"}, false},
		{Attachment{}, false},
	} {
		if got := c.file.IsAudio(); got != c.want {
			t.Errorf("%+v: %t", c.file, got)
		}
	}
}
