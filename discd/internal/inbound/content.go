package inbound

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
)

// maxBeside bounds the words that stand beside the text of a message, in bytes. Discord allows 6,000 characters in
// embeds, or 4,000 in components, in it and in the messages that it forwards.
const maxBeside = 64 << 10

// words collects the words of a message: its text first, then all that stands beside it.
type words struct {
	of        *discordapi.Message // whose mentions are those of the words
	me        Self                // without an id, mentions of the bot do not count
	place     *place
	known     *Guilds
	lines     []string
	size      int // of the lines, in bytes
	addressed bool
}

// bodyOf makes the content of a message: its text, all else that it has, then the messages that it forwards.
func bodyOf(m *discordapi.Message, p *place, me Self, known *Guilds) adapter.Body {
	w := &words{me: me, place: p, known: known}
	w.message(m)
	for i := range m.Snapshots {
		if f := m.Snapshots[i].Message; f != nil {
			w.me = Self{}
			w.add("forwarded:")
			w.message(f)
		}
	}
	if len(w.lines) == 0 && !hasFile(m) && !w.addressed {
		w.add(plaintext.Bracket("unsupported message"))
	}
	return adapter.Body{Content: strings.Join(w.lines, "\n"), Addressed: w.addressed}
}

func (w *words) message(m *discordapi.Message) {
	if m.Content == "" && m.Pasted != "" {
		m = withPaste(m, w.me, w.known.ourRole(w.place.guild))
	}
	w.of = m
	text := w.read(m.Content)
	if text != "" {
		w.lines = append(w.lines, text)
	}
	for _, s := range m.Stickers {
		w.add(plaintext.Bracket("sticker", s.Name))
	}
	for i := range m.Embeds {
		w.add(w.embed(&m.Embeds[i], text))
	}
	for c := range m.Components.All() {
		w.component(c)
	}
	if m.Poll != nil {
		w.poll(m.Poll)
	}
	if m.Activity != nil {
		app := cmp.Or(m.Application, &discordapi.Titled{})
		w.add(plaintext.Bracket("invitation", app.Name))
	}
	if m.Theme != nil {
		w.add(plaintext.Bracket("theme of Discord's client"))
	}
	for _, f := range m.Attachments {
		if f.Description != "" {
			w.add(plaintext.Bracket(cmp.Or(plaintext.Line(fileName(f)), "file"), f.Description))
		}
	}
}

// read is a text with names in place of ids. A mention of the bot counts.
func (w *words) read(text string) string {
	text, addressed := plain(w.of, text, w.place, w.me, w.known)
	w.addressed = w.addressed || addressed
	return text
}

// add adds a text below the others, as far as there is room.
func (w *words) add(text string) {
	if text = strings.TrimSpace(text); plaintext.Line(text) == "" || w.size >= maxBeside {
		return
	}
	if len(text) > maxBeside-w.size {
		text = strings.ToValidUTF8(text[:maxBeside-w.size], "") + "…"
	}
	w.size += len(text) + 1
	w.lines = append(w.lines, text)
}

// embed is the text of an embed, without words that stand in the message's own text. Mentions in it reach no user.
func (w *words) embed(e *discordapi.Embed, beside string) string {
	var lines []string
	above := append(strings.Split(beside, "\n"), beside)
	say := func(text string) (isNew bool) {
		text, _ = plain(w.of, text, w.place, Self{}, w.known)
		text = strings.TrimSpace(text)
		if isNew = plaintext.Line(text) != "" && !slices.Contains(above, text); isNew {
			lines = append(lines, text)
		}
		return isNew
	}
	say(plaintext.Line(e.Author.Name))
	titled := say(plaintext.Line(e.Title))
	switch address := plaintext.Line(e.URL); {
	case address == "" || strings.Contains(beside, address):
	case titled:
		lines[len(lines)-1] += " (" + address + ")"
	default:
		say(address)
	}
	say(e.Description)
	for _, f := range e.Fields {
		say(field(f.Name, f.Value))
	}
	say(e.Footer.Text)
	if e.Type == discordapi.EmbedRich { // a preview shows pictures of the page that it names
		for _, m := range e.Media() {
			say(picture(m, m.Description))
		}
	}
	return strings.Join(lines, "\n")
}

// field is a field of an embed as Markdown. Names and values may be blank.
func field(name, value string) string {
	name, value = plaintext.Line(name), strings.TrimSpace(value)
	switch {
	case name == "":
		return value
	case plaintext.Line(value) == "":
		return "**" + name + "**"
	case strings.Contains(value, "\n"):
		return "**" + name + "**:\n" + value
	}
	return "**" + name + "**: " + value
}

// picture is a line for a picture or a video, "" if it is a file of the message that nothing describes.
func picture(m discordapi.Media, description string) string {
	address := m.URL
	if m.IsUpload() {
		address = ""
	}
	if address == "" && description == "" {
		return ""
	}
	kind := "image"
	if strings.HasPrefix(m.ContentType, "video/") {
		kind = "video"
	}
	return plaintext.Bracket(kind, description, address)
}

// component adds the words of a component, not those of the components in it. One of a newer kind has the words that it
// shares with others.
func (w *words) component(c *discordapi.Component) {
	switch {
	case c.Type == discordapi.ComponentButton:
		w.add(plaintext.Bracket("button", cmp.Or(c.Label, emojiSign(c.Emoji)), c.URL))
	case discordapi.ComponentMenu <= c.Type && c.Type <= discordapi.ComponentChannels:
		details := []string{cmp.Or(c.Label, c.Placeholder)}
		for _, o := range c.Options {
			details = append(details, o.Label)
		}
		w.add(plaintext.Bracket("menu", details...))
	case c.Media.URL != "":
		w.add(picture(c.Media, c.Description))
	default:
		for _, text := range []string{c.Label, c.Content, c.Description} {
			w.add(w.read(text))
		}
	}
}

func (w *words) poll(p *discordapi.Poll) {
	w.add(plaintext.Bracket("poll", p.Question.Text))
	for _, a := range p.Answers {
		w.add("- " + plaintext.Line(emojiSign(a.Media.Emoji)+" "+a.Media.Text))
	}
}

// emojiSign is an emoji as it is written, "" for none.
func emojiSign(e *discordapi.Emoji) string {
	switch {
	case e == nil || e.Name == "":
		return ""
	case e.ID != "":
		return ":" + e.Name + ":"
	}
	return e.Name
}

// uploads are the files that embeds and components of a message show: they are not among its attachments.
func uploads(m *discordapi.Message) (files []discordapi.Attachment) {
	add := func(media discordapi.Media, name string, size int64) {
		if media.IsUpload() {
			address, _, _ := strings.Cut(media.URL, "?")
			files = append(files, discordapi.Attachment{
				Filename: cmp.Or(name, path.Base(address)), ContentType: media.ContentType, Size: size, URL: media.URL,
			})
		}
	}
	for i := range m.Embeds {
		if e := &m.Embeds[i]; e.Type == discordapi.EmbedRich {
			for _, media := range e.Media() {
				add(media, "", 0)
			}
		}
	}
	for c := range m.Components.All() {
		add(c.Media, "", 0)
		add(c.File, c.Name, c.Size)
	}
	return files
}
