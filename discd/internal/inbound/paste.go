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

// Paste returns the file that a user's message has in place of a text; nil for none.
func Paste(m *discordapi.Message) *discordapi.Attachment {
	if m.Content != "" || m.Author == nil || m.Author.Bot || m.WebhookID != "" || !written(m.Type) || len(m.Attachments) != 1 ||
		len(m.Embeds)+len(m.Components)+len(m.Stickers)+len(m.Snapshots) > 0 || m.Poll != nil {
		return nil
	}
	f := &m.Attachments[0]
	isText := f.ContentType == "" || strings.HasPrefix(f.ContentType, "text/plain")
	if f.Filename != pasteName || !isText || f.Size <= 0 || f.Size > MaxPaste {
		return nil
	}
	return f
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

// withPaste is a message with the text that came as a file in place of its own. Discord does not look for mentions in files.
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
