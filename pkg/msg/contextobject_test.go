package msg

import "testing"

func TestMediaKind(t *testing.T) {
	t.Parallel()
	for mime, want := range map[string]ContextKind{
		"image/jpeg": ContextImage, "video/mp4": ContextVideo, "audio/ogg": ContextVoice, "application/pdf": ContextPDF,
		"text/plain": ContextDocument, "imagefile/x": ContextDocument, "": ContextDocument,
	} {
		if got := MediaKind(mime); got != want || !got.IsMedia() {
			t.Errorf("%q is %s, want %s", mime, got, want)
		}
	}
}
