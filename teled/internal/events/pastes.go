package events

import (
	"context"
	"slices"
	"strings"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
)

const (
	// minPiece is the shortest piece, but for the last, of a text that an app has cut into messages, in UTF-16
	// units: the limit is 4,096, and apps cut before it at a space or a line. Mentions of the bot, of at most mention
	// units, are missing in rows.
	minPiece = 4000
	mention  = 100
	// pieceDelayMS is how much later the next piece comes at most. Telegram's dates are whole seconds.
	pieceDelayMS = 2000
	// pastePrefix begins the group key of pieces. The id of the first one follows.
	pastePrefix = "paste:"
)

// groupPiece gives a text message, whose length is in UTF-16 units, the group key of the piece before it, or one of
// its own if another piece may follow: Telegram does not mark the pieces of a text that was too long for one message.
// A short text that is a word to the gateway, such as /stop, is no piece. An error is one of the database, and changes
// nothing.
func (l *Listener) groupPiece(ctx context.Context, m *msg.Message, length int) error {
	if length < minPiece && forGateway(m.Content) {
		return nil
	}
	before, err := rows.LastOfGroup(ctx, l.Store.Reader, m, pastePrefix)
	switch {
	case err != nil:
		return err
	case before != nil && m.Timestamp-before.Timestamp <= pieceDelayMS &&
		render.UTF16Len(before.Content) >= minPiece-mention:
		m.GroupKey = before.GroupKey
	case length >= minPiece:
		m.GroupKey = pastePrefix + m.PlatformID
	}
	return nil
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
