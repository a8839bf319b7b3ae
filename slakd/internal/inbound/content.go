package inbound

import (
	"cmp"
	"slices"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
)

const (
	// maxBeside bounds the text of blocks, cards and forwarded messages, in bytes.
	maxBeside = 64 << 10
	// maxForwards bounds how deep forwarded messages are read within each other.
	maxForwards = 4
	// cutText ends a content that is longer.
	cutText = "[the rest can only be read in Slack]"
)

// placeholder reports whether a text is Slack's own, for clients that can show nothing else.
func placeholder(text string) bool {
	switch strings.ReplaceAll(strings.TrimSpace(text), "’", "'") {
	case "[no preview available]", "This content can't be displayed.":
		return true
	}
	return false
}

// content collects the words of a message, each once.
type content struct {
	reader
	lines []string
	said  string // the words of the lines, as says compares them
	found int    // texts that were added, also those that were there already
	size  int    // of what stands beside the text, in bytes
}

// add adds a text that stands beside the message's own, unless that says it already.
func (c *content) add(text string) {
	text = strings.TrimRight(text, "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	c.found++
	if !c.says(text) {
		c.put(text)
	}
}

func (c *content) put(text string) {
	if c.size > maxBeside {
		return
	}
	if left := maxBeside - c.size; len(text) > left {
		text = strings.ToValidUTF8(text[:left], "") + "\n" + cutText
		c.size = maxBeside + 1
	}
	c.size += len(text)
	c.keep(text)
}

func (c *content) keep(text string) {
	c.lines = append(c.lines, text)
	if words := wordsOf(text); words != "" {
		c.said = strings.TrimSuffix(c.said, " ") + words
	}
}

// says reports whether the content has the words of a text already, in their order.
func (c *content) says(text string) bool {
	if words := wordsOf(text); words != "" {
		return strings.Contains(c.said, words)
	}
	return slices.ContainsFunc(c.lines, func(line string) bool {
		return strings.Contains(line,
			strings.TrimSpace(text))
	})
}

// marks stand around words as markup or punctuation: Slack writes them in different ways into a text and into its
// blocks.
const marks = "*_~`>|•.,:;!?\"'()[]"

// wordsOf are the words of a text between blanks, without marks.
func wordsOf(text string) string {
	var all []string
	for _, field := range strings.Fields(text) {
		if word := strings.Trim(field, marks); word != "" && word != "-" {
			all = append(all, word)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(all, " ") + " "
}

// bodyOf makes the content of a message: its text, then the words of its blocks and cards that the text lacks, then
// what was forwarded with it.
func bodyOf(m *Message, me Self, names Names) adapter.Body {
	c := ownWords(m, me, names)
	for i := range m.Attachments {
		if a := &m.Attachments[i]; a.quotes() {
			c.quote(a, 0)
		}
	}
	return adapter.Body{
		Content: strings.Join(c.lines, "\n"), Addressed: c.addressed,
		Empty: len(c.lines) == 0 && !c.addressed && len(filesOf(m)) == 0,
	}
}

// ownWords are the words of a message without those of forwarded messages.
func ownWords(m *Message, me Self, names Names) *content {
	c := &content{reader: reader{me: me, names: names}}
	text := m.Text
	if placeholder(text) && len(m.Blocks)+len(m.Attachments) > 0 {
		text = ""
	}
	bare := strings.TrimSpace(text) == ""
	if words := c.mrkdwn(text); words != "" && !bare {
		c.keep(words)
	}
	except := ""
	if !bare && m.BotID == "" {
		except = "rich_text" // Slack makes a user's text of it
	}
	for _, words := range c.blocks(m.Blocks, except) {
		c.add(words)
	}
	c.me = Self{} // a mention in a card is not the sender's
	for i := range m.Attachments {
		if a := &m.Attachments[i]; !a.quotes() && (bare || !a.previews()) {
			c.card(a, 0)
		}
	}
	c.describe(m.Files, false)
	return c
}

// card adds the words of a card.
func (c *content) card(a *Attachment, depth int) {
	before := c.found
	c.add(c.mrkdwn(a.Pretext))
	if !a.quotes() {
		c.add(lines(c.mrkdwn(a.AuthorName), c.mrkdwn(a.AuthorSubname)))
	}
	c.add(c.title(a))
	if !placeholder(a.Text) {
		c.add(c.mrkdwn(a.Text))
	}
	for _, f := range a.Fields {
		c.add(field(c.mrkdwn(f.Title), c.mrkdwn(f.Value)))
	}
	for _, words := range c.blocks(a.Blocks, "") {
		c.add(words)
	}
	for _, m := range a.messages() {
		c.nested(&m, depth)
	}
	for _, action := range a.Actions {
		c.add(bracket(action.Type, action.Text, action.URL))
	}
	if a.ImageURL != "" {
		c.add(bracket("image", a.ImageURL))
	}
	if !a.quotes() { // where a forwarded message is from
		c.add(c.mrkdwn(a.Footer))
	}
	c.within(decodeAll[Attachment](a.Attachments), depth)
	c.describe(a.Files, true)
	if c.found > before {
		return
	}
	if words := c.mrkdwn(a.Fallback); strings.TrimSpace(words) != "" && !placeholder(words) {
		c.add(words)
	} else if !a.quotes() {
		c.add("[a card that only Slack shows]")
	}
}

// nested adds the message that a card shows.
func (c *content) nested(m *Message, depth int) {
	if !placeholder(m.Text) {
		c.add(c.mrkdwn(m.Text))
	}
	for _, words := range c.blocks(m.Blocks, "") {
		c.add(words)
	}
	c.within(m.Attachments, depth)
	c.describe(m.Files, true)
}

// within adds the cards of a card.
func (c *content) within(all []Attachment, depth int) {
	if depth >= maxForwards {
		if len(all) > 0 {
			c.add(cutText)
		}
		return
	}
	for i := range all {
		switch a := &all[i]; {
		case a.quotes():
			c.quote(a, depth+1)
		case !a.previews():
			c.card(a, depth+1)
		}
	}
}

// quote adds a message that was forwarded, or that the text links to. Words that stand elsewhere already are left out
// there, too.
func (c *content) quote(a *Attachment, depth int) {
	q := &content{reader: reader{names: c.names}, size: c.size}
	q.card(a, depth)
	how := map[bool]string{true: "forwarded from ", false: "quoted from "}[a.IsShare]
	author := cmp.Or(plaintext.Line(a.AuthorName), plaintext.Line(c.names.User(a.AuthorID)), plaintext.UnknownUser)
	c.found++
	c.keep(lines(append([]string{how + author + ":"}, q.lines...)...))
	c.size = q.size
}

// title is the title of a card with its link.
func (c *content) title(a *Attachment) string {
	words := c.mrkdwn(a.Title)
	if words == "" || a.TitleLink == "" || strings.Contains(words, a.TitleLink) {
		return words
	}
	return link(a.TitleLink, words)
}

func field(title, value string) string {
	switch {
	case strings.TrimSpace(title) == "":
		return value
	case strings.TrimSpace(value) == "":
		return title
	}
	return strings.TrimSuffix(title, ":") + ": " + value
}

// describe adds users' descriptions of files; named also lists files without that.
func (c *content) describe(files []File, named bool) {
	for i := range files {
		f := &files[i]
		title := f.Title
		if strings.HasPrefix(f.Name, title) || fileName(f) != f.Name { // it says no more
			title = ""
		}
		name := plaintext.Line(fileName(f))
		switch {
		case title != "" || f.AltText != "":
			c.add(bracket("file", name, title, f.AltText))
		case named:
			c.add(bracket("file", name))
		}
	}
}
