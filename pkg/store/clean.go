package store

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"arizuko/pkg/msg"
)

// Limits of a row's texts, in bytes. maxContent is far above what any platform
// accepts as one message, and below what an agent's input line may have; the
// expressions in queries.go repeat it.
const (
	MaxContent     = 1 << 20
	maxQuote       = 64 << 10
	maxName        = 1 << 10
	MaxReference   = 4 << 10 // paths, platform ids, references to files
	maxAttachments = 100
)

// clean prepares a message for the database: its texts are valid UTF-8 without
// NUL, which SQLite's text functions and some platforms do not handle, and are cut
// to their limits.
func clean(m *msg.Message) {
	m.Content = Cut(CleanText(m.Content), MaxContent)
	m.Quote = Cut(CleanText(m.Quote), maxQuote)
	m.SenderName = CleanName(m.SenderName)
	for _, id := range [...]*string{&m.ChatJID, &m.PlatformID, &m.Sender, &m.Verb, &m.Topic, &m.ThreadID, &m.ReplyToID,
		&m.TargetID, &m.Source, &m.GroupKey} {
		*id = Truncate(CleanText(*id), MaxReference)
	}
	m.Attachments = cleanAttachments(m.Attachments)
}

// cleanAttachments returns a cleaned copy. Beyond maxAttachments one entry says
// how many were left out.
func cleanAttachments(all []msg.Attachment) []msg.Attachment {
	if len(all) == 0 {
		return nil
	}
	kept := append([]msg.Attachment(nil), all[:min(len(all), maxAttachments)]...)
	for i := range kept {
		a := &kept[i]
		a.Name, a.MIME, a.Error = CleanName(a.Name), CleanName(a.MIME), CleanName(a.Error)
		a.Path, a.Ref = Truncate(CleanText(a.Path), MaxReference), Truncate(CleanText(a.Ref), MaxReference)
	}
	if left := len(all) - len(kept); left > 0 {
		kept = append(kept, msg.Attachment{
			Name:  fmt.Sprintf("%d more files", left),
			Error: fmt.Sprintf("left out: a message has at most %d files", maxAttachments),
		})
	}
	return kept
}

// CleanName cleans a short text and cuts it.
func CleanName(s string) string { return Truncate(CleanText(s), maxName) }

// CleanText replaces invalid UTF-8 and removes NUL.
func CleanText(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	return s
}

// Cut shortens a text to at most limit bytes, including a remark that says so.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	remark := fmt.Sprintf("\n[cut: the message has %d bytes]", len(s))
	return Truncate(s, limit-len(remark)) + remark
}

// Truncate shortens a valid text to at most limit bytes without splitting a rune.
func Truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
