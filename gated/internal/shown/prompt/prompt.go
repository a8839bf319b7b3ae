// Package prompt writes the prompt of one turn: XML in which every text is escaped,
// so that no message can forge a tag, or give an order to the program that carries it to
// the model. It does no I/O.
package prompt

import (
	"strings"
	"time"
	"unicode/utf8"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

// Input is the content of one prompt. Only Turn must be set; a block without
// content is left out.
type Input struct {
	Turn           *msg.Turn
	Kind           msg.ChatKind // of the turn's chat, "" if it is not known
	Title          string       // of the turn's chat, as its members named it
	System         []SystemLine
	ChannelContext string // the recent lines of the chat, already formatted

	Observed     []*msg.Message // rows of other chats, oldest first
	ObservedLeft int            // how many older ones were left out
	ReplyChain   []*msg.Message // the messages that these answer, oldest first
	Messages     []*msg.Message // the rows of the turn, oldest first

	// ChatTitles names the chats of observed rows, by JID.
	ChatTitles map[string]string
	// RowIDs maps platform ids to messages.id for the chat of Messages and
	// ReplyChain. Observed rows never use it: platform ids of two chats collide.
	RowIDs    map[string]int64
	Operators map[string]bool // senders whose messages are marked
	Location  *time.Location  // of the times shown; nil is UTC
}

// SystemLine is one system message flushed into the prompt.
type SystemLine struct {
	Origin string // the part of the suite that wrote it, e.g. "gated"
	Event  string // e.g. "new_day"
	Body   string
}

// skipContext is the "no entry" sign with which a message asks to be answered
// in isolation, with or without a variation selector behind it. Slack sends its name.
const (
	skipContext      = "\U0001F6AB"
	skipContextSlack = ":no_entry_sign:"
)

// ShouldSkipContext reports whether any of a turn's messages asks to be answered
// without the chat's recent lines and without observed rows. A reaction with the sign,
// and a note about an edit, ask for nothing.
func ShouldSkipContext(rows []*msg.Message) bool {
	for _, row := range rows {
		if row.Verb == msg.VerbReaction || row.Disposition == msg.Observed {
			continue
		}
		if strings.Contains(row.Content, skipContext) || msg.FamilyOf(row.ChatJID) == "slack" &&
			strings.Contains(row.Content, skipContextSlack) {
			return true
		}
	}
	return false
}

// Build writes the prompt. An XML parser reads every text back as it was, except
// that line ends become "\n", invalid UTF-8 becomes U+FFFD, and characters that
// XML 1.0 cannot represent are dropped.
func Build(in Input) string {
	w := writer{location: in.Location, rowIDs: in.RowIDs, operators: in.Operators}
	if w.location == nil {
		w.location = time.UTC
	}
	w.Grow(size(&in))
	for _, line := range in.System {
		w.system(line)
	}
	w.turn(&in)
	if in.ChannelContext != "" {
		w.WriteString("<channel_context>")
		w.text(in.ChannelContext)
		w.WriteString("</channel_context>\n")
	}
	w.observed(&in)
	w.block("reply_chain", in.ReplyChain)
	w.block("messages", in.Messages)
	return agentproto.Inert(w.String())
}

// Limits of attributes: titles in characters, quotes in bytes; and of all transcripts of a prompt, in bytes.
const (
	maxTitle       = 100
	maxQuote       = 4 << 10
	maxTranscripts = 128 << 10
)

// rowOverhead estimates the tags and attributes of one row, in bytes.
const rowOverhead = 192

// size estimates the bytes of the prompt, so that it is written into one buffer.
func size(in *Input) int {
	n := 2*rowOverhead + len(in.ChannelContext)
	for _, line := range in.System {
		n += rowOverhead + len(line.Body)
	}
	for _, rows := range [][]*msg.Message{in.Observed, in.ReplyChain, in.Messages} {
		for _, row := range rows {
			n += rowOverhead*(1+len(row.Attachments)) + len(row.Content) + min(len(row.Quote), maxQuote)
		}
	}
	return n + n/16 // for escapes
}

// escape writes s as plain text for an XML parser: between tags, or between the
// double quotes of an attribute.
func escape(b *strings.Builder, s string, inAttr bool) {
	written, width := 0, 0
	for i := 0; i < len(s); i += width {
		var r rune
		r, width = utf8.DecodeRuneInString(s[i:])
		if r == '\r' && strings.HasPrefix(s[i+1:], "\n") {
			width = len("\r\n")
		}
		if instead, ok := replacement(r, width, inAttr); ok {
			b.WriteString(s[written:i])
			b.WriteString(instead)
			written = i + width
		}
	}
	b.WriteString(s[written:])
}

// replacement returns the replacement of a character of width bytes; ok is false if
// it needs none.
func replacement(r rune, width int, inAttr bool) (instead string, ok bool) {
	switch {
	case r == '&':
		return "&amp;", true
	case r == '<':
		return "&lt;", true
	case r == '>': // "]]>" is not text in XML
		return "&gt;", true
	case r == '"':
		return "&quot;", inAttr
	case r == '\t':
		return "&#x9;", inAttr // a parser may read it as a space
	case r == '\n', r == '\r' && inAttr:
		return "&#xA;", inAttr
	case r == '\r':
		return "\n", true
	case r < ' ', r == 0xFFFE, r == 0xFFFF: // not in XML 1.0, not even as a reference
		return "", true
	case r == utf8.RuneError && width == 1: // not UTF-8; a real U+FFFD takes three bytes
		return "\uFFFD", true
	}
	return "", false
}
