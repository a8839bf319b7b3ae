package inbound

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"arizuko/discd/internal/discordapi"
)

// MaxPaste bounds a text that comes as a file, in bytes.
const MaxPaste = 64 << 10

// pasteName is the name that Discord's clients give to the file of a text above 2,000 characters.
const pasteName = "message.txt"

// Pastes are those of a user's message, and of messages that it forwards or answers, with a file in place of a text:
// the file is the only one.
func Pastes(m *discordapi.Message) (all []*discordapi.Message) {
	if m == nil || !byUser(m) {
		return nil
	}
	if isPaste(m) && len(m.Snapshots) == 0 {
		all = append(all, m)
	}
	for i := range m.Snapshots {
		if f := m.Snapshots[i].Message; f != nil && isPaste(f) { // whose it was is not known
			all = append(all, f)
		}
	}
	if of := m.Referenced; of != nil && byUser(of) && isPaste(of) {
		all = append(all, of)
	}
	return all
}

func byUser(m *discordapi.Message) bool {
	return m.Author != nil && !m.Author.Bot && m.WebhookID == ""
}

func isPaste(m *discordapi.Message) bool {
	if m.Content != "" || !written(m.Type) || len(m.Attachments) != 1 ||
		len(m.Embeds)+len(m.Components)+len(m.Stickers) > 0 || m.Poll != nil {
		return false
	}
	f := &m.Attachments[0]
	isText := f.ContentType == "" || strings.HasPrefix(f.ContentType, "text/plain")
	return f.Filename == pasteName && isText && f.Size > 0 && f.Size <= MaxPaste
}

// PasteText is the text of such a file, "" if it holds none.
func PasteText(file []byte) string {
	text := strings.TrimPrefix(string(file), "\ufeff")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}

// code is code in a text, in which Discord takes nothing for a mention.
var code = regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`\n]*`")

// withPaste is a message with the text that came as a file in place of its own. Discord does not look for mentions in
// files.
func withPaste(m *discordapi.Message, me Self, ourRole string) *discordapi.Message {
	whole := *m
	whole.Content, whole.Pasted = m.Pasted, ""
	for _, sign := range signs.FindAllStringSubmatch(code.ReplaceAllString(m.Pasted, ""), -1) {
		switch {
		case sign[signUser] == me.ID && me.ID != "":
			whole.Mentions = append(slices.Clone(m.Mentions), discordapi.User{ID: me.ID})
		case sign[signRole] == ourRole && ourRole != "":
			whole.MentionRoles = append(slices.Clone(m.MentionRoles), ourRole)
		}
	}
	return &whole
}
