package inbound

import (
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// attachments returns the files of a message, and how many of them have to be downloaded.
func attachments(t *telegramapi.Things) (all []msg.Attachment, pending int) {
	for _, f := range filesOf(t) {
		problem := ""
		if f.FileID == "" {
			problem = "Telegram sent no file id"
		}
		a := adapter.NewAttachment(f.FileName, f.MIMEType, f.FileSize, f.FileID, problem)
		a.Voice = t.Voice != nil || t.VideoNote != nil
		a.Duration = max(f.Duration, 0)
		all = append(all, a)
	}
	return all, adapter.Pending(all)
}

// filesOf are the files of a message: one at most, but for paid media, if the bot may see them, polls and rich
// messages. Kinds without a name and a type get those that Telegram uses for them.
func filesOf(t *telegramapi.Things) []telegramapi.File {
	switch {
	case len(t.Photo) > 0:
		return known(largest(t.Photo), "photo.jpg", "image/jpeg")
	case t.LivePhoto != nil: // beside Photo, but where an answered message is elsewhere
		return known(*t.LivePhoto, "live_photo.mp4", "video/mp4")
	case t.Animation != nil:
		return known(*t.Animation, "animation.mp4", "video/mp4")
	case t.Document != nil:
		return known(*t.Document, "document", "application/octet-stream")
	case t.Video != nil:
		return known(*t.Video, "video.mp4", "video/mp4")
	case t.VideoNote != nil:
		return known(*t.VideoNote, "video_note.mp4", "video/mp4")
	case t.Voice != nil:
		return known(*t.Voice, "voice.ogg", "audio/ogg")
	case t.Audio != nil:
		return known(*t.Audio, song(t.Audio), "audio/mpeg")
	case t.Sticker != nil && !t.Sticker.IsAnimated && !t.Sticker.IsVideo:
		return known(t.Sticker.File, "sticker.webp", "image/webp")
	case t.PaidMedia != nil:
		return bought(t.PaidMedia)
	case t.Poll != nil:
		return ofPoll(t.Poll)
	case t.RichMessage != nil:
		return readRich(t.RichMessage, Self{}).files
	}
	return nil
}

// song names music whose file has no name.
func song(f *telegramapi.File) string {
	if name := joined(" - ", plaintext.Line(f.Performer), plaintext.Line(f.Title)); name != "" {
		return name + ".mp3"
	}
	return "audio.mp3"
}

// ofPoll are the files of a poll and its options.
func ofPoll(p *telegramapi.Poll) (all []telegramapi.File) {
	media := []*telegramapi.PollMedia{p.Media}
	for i := range p.Options {
		media = append(media, p.Options[i].Media)
	}
	for _, m := range media {
		if m != nil {
			all = append(all, filesOf(&m.Things)...)
		}
	}
	return all
}

// bought are the paid media that are more than previews.
func bought(p *telegramapi.PaidMedia) (all []telegramapi.File) {
	for _, m := range p.Media {
		switch {
		case len(m.Photo) > 0:
			all = append(all, known(largest(m.Photo), "photo.jpg", "image/jpeg")...)
		case m.Video != nil:
			all = append(all, known(*m.Video, "video.mp4", "video/mp4")...)
		case m.LivePhoto != nil:
			all = append(all, known(*m.LivePhoto, "live_photo.mp4", "video/mp4")...)
		}
	}
	return all
}

func known(f telegramapi.File, name, mime string) []telegramapi.File {
	if f.FileName == "" {
		f.FileName = name
	}
	if f.MIMEType == "" {
		f.MIMEType = mime
	}
	return []telegramapi.File{f}
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
