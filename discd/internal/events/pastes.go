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
	// pasteTimeout bounds the download of a text that came as a file: later events wait for it.
	pasteTimeout = 2 * time.Second
	// pastesTimeout bounds the downloads for a page of missed messages.
	pastesTimeout = maxHold / 2
	// pasteDelay is the pause after a download that failed, in which such messages have their file alone.
	pasteDelay = time.Minute
)

// readPaste downloads the text of a new message, if it came as a file.
func (l *Listener) readPaste(ctx context.Context, s *adapter.Shell, m *discordapi.Message) {
	if m == nil || s.Now().Before(l.nextPaste) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pasteTimeout)
	defer cancel()
	text, err := l.paste(ctx, m)
	if err != nil {
		s.Log.Warn("text that came as a file not read; the message has the file", "channel", m.ChannelID, "err", err)
		l.nextPaste = s.Now().Add(pasteDelay)
	}
	m.Pasted = text
}

// pastes downloads the texts of missed messages that came as files, by their places among the messages.
func (l *Listener) pastes(ctx context.Context, messages []json.RawMessage) map[int]string {
	ctx, cancel := context.WithTimeout(ctx, pastesTimeout)
	defer cancel()
	texts := map[int]string{}
	for i, raw := range messages {
		var m discordapi.Message
		if json.Unmarshal(raw, &m) == nil {
			texts[i], _ = l.paste(ctx, &m) // without it there is the file
		}
	}
	return texts
}

// paste is the text of a message that came as a file, "" for none.
func (l *Listener) paste(ctx context.Context, m *discordapi.Message) (string, error) {
	f := inbound.Paste(m)
	if f == nil {
		return "", nil
	}
	var text pasted
	if err := l.api.Download(ctx, f.URL, &text); err != nil {
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
