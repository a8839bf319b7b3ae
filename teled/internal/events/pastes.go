package events

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

const (
	// minPiece is the shortest piece, but for the last, of a text that an app has cut into messages, in UTF-16
	// units: the limit is 4,096, and apps cut before it at a space or a line.
	minPiece = 4000
	// pieceDelayMS is how much later the next piece comes at most. Telegram's dates are whole seconds.
	pieceDelayMS = 2000
	// maxBetween is how many messages back the piece before one is looked for after a restart.
	maxBetween = 8
	// pastePrefix begins the group key of pieces. The id of the first one follows.
	pastePrefix = "paste:"
)

// writer is a user in a thread of a chat.
type writer struct{ chat, thread, sender string }

// pastes finds the pieces of a text that was too long for one message, which Telegram does not mark. It
// remembers the last long piece of each writer, for some seconds.
type pastes struct {
	last map[writer]*msg.Message
	// resumed is true once the first updates after a restart are stored: the piece before one of those may
	// be known only from its row.
	resumed bool
	// stored returns a message that was stored before a restart, nil if there is none.
	stored func(ctx context.Context, chatJID, platformID string) (*msg.Message, error)
}

func newPastes(s *store.Store) *pastes {
	return &pastes{last: map[writer]*msg.Message{}, stored: s.MessageByPlatformID}
}

// group gives a text message, whose length is in UTF-16 units, the group key of the piece before it, or one of
// its own if another piece may follow. A short text that is a word to the gateway, such as /stop, is no piece. An
// error is one of the database, and changes nothing.
func (p *pastes) group(ctx context.Context, m *msg.Message, length int) error {
	if length < minPiece && forGateway(m.Content) {
		return nil
	}
	at := writer{m.ChatJID, m.ThreadID, m.Sender}
	before := p.last[at]
	if before == nil && !p.resumed {
		var err error
		if before, err = p.rowBefore(ctx, m); err != nil {
			return err
		}
	}
	delete(p.last, at)
	if before != nil && m.Timestamp-before.Timestamp <= pieceDelayMS {
		m.GroupKey = before.GroupKey
	}
	if length < minPiece {
		return nil
	}
	if m.GroupKey == "" {
		m.GroupKey = pastePrefix + m.PlatformID
	}
	for other, long := range p.last {
		if m.Timestamp-long.Timestamp > pieceDelayMS {
			delete(p.last, other)
		}
	}
	p.last[at] = &msg.Message{GroupKey: m.GroupKey, Timestamp: m.Timestamp}
	return nil
}

// rowBefore is the row of the last message of the same writer before m, if it is a long piece: of the few messages
// before m others may be of other users, or of other chats. Mentions of the bot are missing in rows, so that a piece
// may be somewhat shorter there.
func (p *pastes) rowBefore(ctx context.Context, m *msg.Message) (*msg.Message, error) {
	const mention = 100
	mark, number := msg.CutBotMark(m.PlatformID)
	id, _ := strconv.ParseInt(number, 10, 64) // always a number
	for before := id - 1; before >= max(id-maxBetween, 1); before-- {
		row, err := p.stored(ctx, m.ChatJID, mark+strconv.FormatInt(before, 10))
		switch {
		case err != nil:
			return nil, err
		case row == nil || row.Sender != m.Sender || row.ThreadID != m.ThreadID:
			continue
		case !strings.HasPrefix(row.GroupKey, pastePrefix) || render.UTF16Len(row.Content) < minPiece-mention:
			return nil, nil
		}
		return row, nil
	}
	return nil, nil
}

// forGateway reports whether a text is a command of gated's, which waits for nothing, or a word that pins a group or
// a topic.
func forGateway(text string) bool {
	words := strings.Fields(text)
	if len(words) == 0 {
		return false
	}
	sigil, name := words[0][:1], words[0][1:]
	switch {
	case sigil == "/":
		name, _, _ = strings.Cut(name, "@")
		return slices.ContainsFunc(msg.GatewayCommands(),
			func(c msg.GatewayCommand) bool { return strings.EqualFold(c.Name, name) })
	case len(words) > 1:
		return false
	case sigil == "@":
		return name == "" || msg.ValidFolder(name) == nil
	}
	return sigil == msg.TopicSigil && (name == "" || msg.ValidTopicName(name))
}
