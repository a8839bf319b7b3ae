package events

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
)

const (
	// pasteTimeout bounds the downloads of texts of a message that came as files: later events wait for them.
	pasteTimeout = 2 * time.Second
	// pastesTimeout bounds the downloads for a page of missed messages.
	pastesTimeout = maxHold / 2
	// pasteDelay is the pause after a download that failed, in which such messages have their file alone.
	pasteDelay = time.Minute
)

// pasteReader downloads the texts of messages that came as files.
type pasteReader struct {
	api *discordapi.Client
	// next is when the next text of a new message may be downloaded.
	next time.Time
}

// readNew downloads the texts of a new message that came as files.
func (p *pasteReader) readNew(ctx context.Context, s *adapter.Shell, m *discordapi.Message) {
	pastes := inbound.Pastes(m)
	if len(pastes) == 0 || s.Now().Before(p.next) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pasteTimeout)
	defer cancel()
	for _, of := range pastes {
		var err error
		if of.Pasted, err = p.read(ctx, &of.Attachments[0]); err != nil {
			s.Log.Warn("text that came as a file not read; the message has the file", "channel", m.ChannelID, "err",
				err)
			p.next = s.Now().Add(pasteDelay)
		}
	}
}

// readMissed downloads the texts of missed messages that came as files, by the URLs of these.
func (p *pasteReader) readMissed(ctx context.Context, messages []json.RawMessage) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, pastesTimeout)
	defer cancel()
	texts := map[string]string{}
	for _, raw := range messages {
		var m discordapi.Message
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		for _, of := range inbound.Pastes(&m) {
			f := &of.Attachments[0]
			texts[f.URL], _ = p.read(ctx, f) // without it there is the file
		}
	}
	return texts
}

// read returns the text in a file.
func (p *pasteReader) read(ctx context.Context, f *discordapi.Attachment) (string, error) {
	var text pasted
	if err := p.api.Download(ctx, f.URL, &text); err != nil {
		return "", err
	}
	if int64(len(text)) != f.Size {
		return "", errors.New("the file has another size than Discord says")
	}
	return inbound.PasteText(text), nil
}

// pasted is a text that is downloaded.
type pasted []byte

// Write implements io.Writer.
func (p *pasted) Write(some []byte) (int, error) {
	if len(*p)+len(some) > inbound.MaxPaste {
		return 0, errors.New("the file is larger than Discord says")
	}
	*p = append(*p, some...)
	return len(some), nil
}
