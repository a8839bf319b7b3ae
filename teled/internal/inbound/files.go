package inbound

import (
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// attachments returns the files of a message, and how many of them have to be downloaded.
func attachments(m *telegramapi.Message) (all []msg.Attachment, pending int) {
	f, ok := file(m)
	if !ok {
		return nil, 0
	}
	problem := ""
	if f.FileID == "" {
		problem = "Telegram sent no file id"
	}
	all = []msg.Attachment{adapter.NewAttachment(f.FileName, f.MIMEType, f.FileSize, f.FileID, problem)}
	return all, adapter.Pending(all)
}

func hasFile(m *telegramapi.Message) bool {
	_, ok := file(m)
	return ok
}

// file is the file of a message, which has at most one. Kinds without a name and a type get those that
// Telegram uses for them.
func file(m *telegramapi.Message) (telegramapi.File, bool) {
	switch {
	case len(m.Photo) > 0:
		return known(largest(m.Photo), "photo.jpg", "image/jpeg")
	case m.Animation != nil:
		return known(*m.Animation, "animation.mp4", "video/mp4")
	case m.Document != nil:
		return known(*m.Document, "document", "application/octet-stream")
	case m.Video != nil:
		return known(*m.Video, "video.mp4", "video/mp4")
	case m.VideoNote != nil:
		return known(*m.VideoNote, "video_note.mp4", "video/mp4")
	case m.Voice != nil:
		return known(*m.Voice, "voice.ogg", "audio/ogg")
	case m.Audio != nil:
		return known(*m.Audio, "audio.mp3", "audio/mpeg")
	case m.Sticker != nil && !m.Sticker.IsAnimated && !m.Sticker.IsVideo:
		return known(m.Sticker.File, "sticker.webp", "image/webp")
	}
	return telegramapi.File{}, false
}

func known(f telegramapi.File, name, mime string) (telegramapi.File, bool) {
	if f.FileName == "" {
		f.FileName = name
	}
	if f.MIMEType == "" {
		f.MIMEType = mime
	}
	return f, true
}

func largest(sizes []telegramapi.PhotoSize) telegramapi.File {
	best := &sizes[0]
	for i := range sizes {
		if area(&sizes[i]) > area(best) {
			best = &sizes[i]
		}
	}
	return best.File
}

func area(p *telegramapi.PhotoSize) int64 { return int64(p.Width) * int64(p.Height) }
