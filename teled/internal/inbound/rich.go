package inbound

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"arizuko/pkg/adapter/plaintext"
	"arizuko/teled/internal/telegramapi"
)

// Limits of a rich message. Telegram's own are 32,768 characters, 16 levels and 50 files.
const (
	maxRichText  = 160_000 // bytes
	maxRichDepth = 40      // of blocks and parts of texts in each other
	maxRichFiles = 50
)

// rich is a rich message as Markdown.
type rich struct {
	text      string
	addressed bool // it names the bot
	files     []telegramapi.File
}

// readRich converts a rich message.
func readRich(m *telegramapi.RichMessage, me Self) rich {
	r := &richReader{me: me, left: maxRichText}
	text := r.blocks(m.Blocks)
	if r.cut {
		text += "\n\n" + plaintext.Bracket("the rest is left out")
	}
	return rich{strings.TrimSpace(text), r.addressed, r.files}
}

// node is an object: a block, or a part of a text.
type node = map[string]any

// richReader reads a rich message, as JSON decodes it.
type richReader struct {
	me        Self
	left      int // bytes that may still be read
	depth     int
	cut       bool // something was left out
	addressed bool
	files     []telegramapi.File
}

// enter reports whether another value may be read. If so, depth has to be decreased after that.
func (r *richReader) enter() bool {
	if r.depth >= maxRichDepth || r.left <= 0 {
		r.cut = true
		return false
	}
	r.depth++
	r.left -= 5 // so that values without a text are bounded, too
	return true
}

// read is a string as far as it may be read.
func (r *richReader) read(text string) string {
	text = r.first(text, max(r.left, 0))
	r.left -= len(text)
	return text
}

// first is a text up to a number of bytes.
func (r *richReader) first(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	r.cut = true
	return text[:limit]
}

// prefixed is a text whose lines begin with something.
func (r *richReader) prefixed(text, first, others string) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(r.first(text, maxRichText), "\n")
	for i, line := range lines {
		prefix := others
		if i == 0 {
			prefix = first
		}
		lines[i] = strings.TrimRight(prefix+line, " ")
	}
	return strings.Join(lines, "\n")
}

// blocks are blocks with an empty line between them.
func (r *richReader) blocks(value any) string {
	var texts []string
	list, _ := value.([]any)
	for _, item := range list {
		if b, ok := item.(node); ok && r.enter() {
			texts = append(texts, r.block(b))
			r.depth--
		}
	}
	return joined("\n\n", texts...)
}

// block is one block. Of an unknown kind it is the texts in it.
func (r *richReader) block(b node) string {
	switch kind, _ := b["type"].(string); kind {
	case "heading":
		size, _ := b["size"].(float64)
		return around(strings.Repeat("#", int(min(max(size, 1), 6)))+" ", oneLine(r.text(b["text"])), "")
	case "pre":
		language, _ := b["language"].(string)
		return fenced(plaintext.Line(language), r.text(b["text"]))
	case "mathematical_expression":
		return around("$$", r.expression(b), "$$")
	case "divider":
		return "---"
	case "list":
		return r.list(b["items"])
	case "blockquote", "expandable_blockquote", "pullquote":
		return r.prefixed(joined("\n", r.text(b["text"]), r.blocks(b["blocks"]), r.text(b["credit"])), "> ", "> ")
	case "table":
		return joined("\n\n", r.table(b["cells"]), r.text(b["caption"]))
	case "buttons":
		return r.buttons(b["buttons"])
	case "map", "animation", "audio", "document", "photo", "video", "voice_note":
		return joined("\n", r.media(kind, b), r.caption(b["caption"]))
	}
	return joined("\n\n", r.text(b["text"]), r.text(b["summary"]), r.blocks(b["blocks"]), r.list(b["items"]),
		r.table(b["cells"]),
		r.caption(b["caption"]), r.text(b["credit"]))
}

// list is a list with a line for each item, or more.
func (r *richReader) list(value any) string {
	var items []string
	list, _ := value.([]any)
	for _, v := range list {
		item, ok := v.(node)
		if !ok || !r.enter() {
			continue
		}
		label := "- "
		if value, ok := item["value"].(float64); ok {
			label = fmt.Sprintf("%.0f. ", value)
		} else if text, _ := item["label"].(string); strings.HasSuffix(text, ".") && len(text) < 10 {
			label = plaintext.Line(text) + " "
		}
		if item["has_checkbox"] == true {
			label += map[bool]string{true: "[x] ", false: "[ ] "}[item["is_checked"] == true]
		}
		items = append(items, r.prefixed(r.blocks(item["blocks"]), label, "  "))
		r.depth--
	}
	return joined("\n", items...)
}

// table is a table whose first row is its head.
func (r *richReader) table(value any) string {
	var lines []string
	rows, _ := value.([]any)
	for _, v := range rows {
		cells, _ := v.([]any)
		line := "|"
		for _, cell := range cells {
			if !r.enter() {
				break
			}
			r.depth--
			c, _ := cell.(node)
			line += " " + strings.ReplaceAll(oneLine(r.text(c["text"])), "|", `\|`) + " |"
		}
		if line == "|" {
			continue
		}
		if lines = append(lines, line); len(lines) == 1 {
			lines = append(lines, "|"+strings.Repeat("---|", strings.Count(line, " |")))
		}
	}
	return strings.Join(lines, "\n")
}

// caption is the caption of a block: an object with a text and a credit. That of a table is a text.
func (r *richReader) caption(value any) string {
	if c, ok := value.(node); ok && c["type"] == nil {
		return joined("\n", r.text(c["text"]), r.text(c["credit"]))
	}
	return r.text(value)
}

// media is the file or the place of a block, named in brackets.
func (r *richReader) media(kind string, b node) string {
	var t telegramapi.Things
	fields := node{kind: b[kind]}
	switch kind {
	case "map":
		fields = node{"location": b["location"]}
	case "voice_note":
		fields = node{"voice": b[kind]}
	}
	if text, err := json.Marshal(fields); err != nil || json.Unmarshal(text, &t) != nil {
		return plaintext.Bracket(kind)
	}
	files := filesOf(&t)
	switch {
	case len(files) == 0:
		return describe(&t, r.me)
	case len(r.files) >= maxRichFiles:
		r.cut = true
		return ""
	}
	r.files = append(r.files, files[0])
	return plaintext.Bracket("file", files[0].FileName)
}

func (r *richReader) buttons(value any) string {
	var all []string
	list, _ := value.([]any)
	for _, v := range list {
		b, _ := v.(node)
		all = append(all, r.button(b))
	}
	return joined(" ", all...)
}

func (r *richReader) button(b node) string {
	url, _ := b["url"].(string)
	return plaintext.Bracket("button", r.text(b["text"]), r.read(url))
}

// text is a formatted text: a string, a part, or a list of both. Mentions of the bot are removed.
func (r *richReader) text(value any) string {
	if value == nil || !r.enter() {
		return ""
	}
	defer func() { r.depth-- }()
	parts, ok := value.([]any)
	if !ok {
		parts = []any{value}
	}
	var text strings.Builder
	var names []plaintext.Change
	for _, part := range parts {
		from := text.Len()
		text.WriteString(r.part(part))
		if who := r.whom(part); who != plaintext.NoName {
			r.addressed = r.addressed || who == plaintext.Us
			names = append(names, plaintext.Change{From: from, To: text.Len(), Insert: text.String()[from:],
				Names: who})
		}
	}
	return plaintext.Apply(text.String(), names)
}

// marks stand around the text of a part.
func marks(kind string) string {
	return map[string]string{"bold": "**", "italic": "_", "strikethrough": "~~", "code": "`"}[kind]
}

// part is a part of a text.
func (r *richReader) part(value any) string {
	switch v := value.(type) {
	case string:
		return r.read(strings.ToValidUTF8(v, "\uFFFD"))
	case []any:
		return r.text(v)
	case node:
		kind, _ := v["type"].(string)
		text := r.text(v["text"])
		switch kind {
		case "url":
			if url, _ := v["url"].(string); url != "" && url != text {
				return "[" + text + "](" + r.read(url) + ")"
			}
		case "date_time":
			at, _ := v["unix_time"].(float64)
			return text + around(" (", moment(int64(max(0, min(at, 1e12)))), ")")
		case "custom_emoji":
			return r.text(v["alternative_text"])
		case "mathematical_expression":
			return around("$", r.expression(v), "$")
		case "bot_command":
			if command, name, ok := strings.Cut(text, "@"); ok && r.me.named(name) {
				r.addressed = true
				return command
			}
		case "button":
			b, _ := v["button"].(node)
			return r.button(b)
		}
		return around(marks(kind), text, marks(kind))
	}
	return ""
}

// expression is LaTeX in one line.
func (r *richReader) expression(b node) string {
	text, _ := b["expression"].(string)
	return oneLine(r.read(text))
}

// whom is whom a part of a text names.
func (r *richReader) whom(part any) plaintext.Named {
	p, _ := part.(node)
	switch p["type"] {
	case "mention":
		name, _ := p["username"].(string)
		if name == "" {
			name, _ = p["text"].(string)
		}
		return r.me.whom("@" + strings.TrimPrefix(name, "@"))
	case "text_mention":
		user, _ := p["user"].(node)
		if id, _ := user["id"].(float64); r.me.ID != 0 && int64(id) == r.me.ID {
			return plaintext.Us
		}
		return plaintext.Other
	}
	return plaintext.NoName
}

// joined are the texts that are not empty.
func joined(between string, texts ...string) string {
	var all []string
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, between)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// around is a text with something before and after it, "" for none.
func around(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

// fenced is a block of code.
func fenced(language, code string) string {
	marks := fence("```", code)
	return around(marks+language+"\n", code, "\n"+marks)
}
