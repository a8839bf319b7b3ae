package inbound

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/adapter/plaintext"
)

const (
	// maxDepth bounds how deep blocks are read within each other.
	maxDepth = 20
	// maxItems bounds how many items of a list are read. Slack takes 50 blocks, and 201 rows of a table.
	maxItems = 250
)

// node is an object of a block, of whichever type: one that a message cannot be decoded into is no reason to lose the
// others.
type node map[string]any

func nodeOf(value any) node {
	n, _ := value.(map[string]any)
	return n
}

func (n node) kind() string { return n.str("type") }

func (n node) str(key string) string {
	s, _ := n[key].(string)
	return s
}

// first is the first of several fields that has a text.
func (n node) first(keys ...string) string {
	for _, key := range keys {
		if s := n.str(key); strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

func (n node) number(key string) int {
	f, _ := n[key].(float64)
	return int(max(-1e12, min(f, 1e12)))
}

func (n node) list(key string) []any {
	all, _ := n[key].([]any)
	return all[:min(len(all), maxItems)]
}

// reader reads the words of blocks, as plain text.
type reader struct {
	me        Self
	names     Names
	addressed bool // the words mention the bot
}

// mrkdwn is plain, which notes a mention of the bot.
func (r *reader) mrkdwn(text string) string {
	words, addressed := plain(text, r.me, r.names)
	r.addressed = r.addressed || addressed
	return words
}

// blocks returns the words of each block that has any, but for those of a type.
func (r *reader) blocks(raw json.RawMessage, except string) (all []string) {
	for _, block := range decodeAll[any](raw) {
		n := nodeOf(block)
		if except != "" && n.kind() == except {
			continue
		}
		words := strings.TrimSpace(r.words(block, 0))
		if words == "" && !wordless(n.kind()) {
			words = bracket(n.kind())
		}
		all = append(all, words)
	}
	return slices.DeleteFunc(all, func(words string) bool { return words == "" })
}

// wordless reports whether blocks of a type may be without words: what they show besides is nothing for the agent. The
// file of a file block is among the message's.
func wordless(kind string) bool {
	return slices.Contains([]string{"", "divider", "file", "rich_text", "context", "actions", "context_actions"}, kind)
}

// bracket names a thing of Slack, such as a type of block, with details.
func bracket(kind string, details ...string) string {
	return plaintext.Bracket(cmp.Or(plaintext.Line(strings.ReplaceAll(kind, "_", " ")), "unknown"), details...)
}

// words are those of a value in a block. Strings are no markup there, except in objects of the type mrkdwn.
func (r *reader) words(value any, depth int) string {
	if depth > maxDepth {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		return r.each(v, "\n", depth)
	case map[string]any:
		return r.node(v, depth+1)
	}
	return ""
}

// each joins the words of values, without those that have none.
func (r *reader) each(values []any, separator string, depth int) string {
	var all []string
	for _, v := range values[:min(len(values), maxItems)] {
		if words := r.words(v, depth+1); strings.TrimSpace(words) != "" {
			all = append(all, words)
		}
	}
	return strings.Join(all, separator)
}

// node is the words of an object by its type; one without rules of its own gives the texts of its fields.
func (r *reader) node(n node, depth int) string {
	switch n.kind() {
	case "mrkdwn":
		return r.mrkdwn(n.str("text"))
	case "plain_text":
		return unescape.Replace(n.str("text"))
	case "raw_number":
		return cmp.Or(n.first("text"), r.words(n["value"], depth))
	case "url":
		return r.mrkdwn(inline(n))
	case "rich_text_section", "rich_text_quote", "rich_text_preformatted":
		return r.passage(n)
	case "rich_text_list":
		return r.bullets(n, depth)
	case "context":
		return r.each(n.list("elements"), " ", depth)
	case "table", "data_table":
		return lines(n.first("caption"), r.table(n.list("rows"), depth))
	case "data_visualization":
		return lines(n.first("title"), r.chart(nodeOf(n["chart"]), depth))
	case "image":
		return r.image(n, depth)
	case "video":
		title := cmp.Or(r.words(n["title"], depth), n.first("alt_text"))
		return lines(bracket("video", title, n.str("author_name"), n.str("provider_name"),
			n.first("title_url", "video_url")), r.words(n["description"], depth))
	case "call":
		call := nodeOf(nodeOf(n["call"])["v1"])
		return bracket("call", call.str("name"), call.str("join_url"))
	}
	if n.str("action_id") != "" {
		return r.control(n, depth)
	}
	return strings.Join(r.fields(n, depth), "\n")
}

// wordFields are the fields of objects that hold words, or objects with words, in the order in which Slack shows them.
var wordFields = []string{
	"rich_text_title", "title", "name", "label", "subtitle", "text", "body", "subtext", "description", "details",
	"output", "fields", "accessory", "hero_image",
	"hint", "placeholder", "element", "elements", "positive_button", "negative_button", "options", "option_groups",
	"child_blocks", "rows", "items", "block",
	"tasks", "sources", "actions",
}

// fields are the words of each field of an object.
func (r *reader) fields(n node, depth int) (all []string) {
	for _, key := range wordFields {
		if key == "title" && n["rich_text_title"] != nil { // Slack shows that one
			continue
		}
		if words := strings.TrimSpace(r.words(n[key], depth)); words != "" {
			all = append(all, words)
		}
	}
	return all
}

// control describes an element that users press or fill in, which agents cannot.
func (r *reader) control(n node, depth int) string {
	texts := strings.Split(strings.Join(r.fields(n, depth), "\n"), "\n")
	return bracket(n.kind(), append(texts, n.str("url"))...)
}

// image describes an image, with its address unless it is a small one beside a text.
func (r *reader) image(n node, depth int) string {
	address := ""
	if n.str("block_id") != "" || n["title"] != nil {
		address = cmp.Or(n.str("image_url"), nodeOf(n["slack_file"]).str("url"))
	}
	return bracket("image", r.words(n["title"], depth), n.str("alt_text"), address)
}

// passage is a part of rich text: one whose elements stand in a line.
func (r *reader) passage(n node) string {
	var b strings.Builder
	for _, e := range n.list("elements") {
		b.WriteString(inline(nodeOf(e)))
	}
	text := r.mrkdwn(b.String())
	switch n.kind() {
	case "rich_text_quote":
		return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")
	case "rich_text_preformatted":
		return "```\n" + strings.Trim(text, "\n") + "\n```"
	}
	return strings.TrimSuffix(text, "\n")
}

// bullets is a list in rich text. A list in it is one that follows, with an indent.
func (r *reader) bullets(n node, depth int) string {
	indent := strings.Repeat("  ", max(0, min(n.number("indent"), 8)))
	var all []string
	for i, item := range n.list("elements") {
		mark := "- "
		if n.str("style") == "ordered" {
			mark = fmt.Sprintf("%d. ", n.number("offset")+i+1)
		}
		all = append(all, indent+mark+strings.TrimSpace(r.words(item, depth)))
	}
	return strings.Join(all, "\n")
}

// table is a table's rows as Markdown.
func (r *reader) table(rows []any, depth int) string {
	var grid [][]string
	for _, row := range rows {
		cells, _ := row.([]any)
		var texts []string
		for _, cell := range cells[:min(len(cells), maxItems)] {
			texts = append(texts, r.words(cell, depth))
		}
		grid = append(grid, texts)
	}
	return markdownTable(grid)
}

// chart is a chart's numbers as a table.
func (r *reader) chart(n node, depth int) string {
	axes := nodeOf(n["axis_config"])
	x, y := cmp.Or(axes.first("x_label"), "label"), cmp.Or(axes.first("y_label"), "value")
	grid := [][]string{{x, y}}
	for _, s := range n.list("segments") {
		grid = append(grid, []string{nodeOf(s).str("label"), r.words(nodeOf(s)["value"], depth)})
	}
	series := n.list("series")
	if len(series) > 0 {
		grid = [][]string{{"series", x, y}}
	}
	for _, s := range series {
		for _, point := range nodeOf(s).list("data") {
			grid = append(grid, []string{nodeOf(s).str("name"), nodeOf(point).str("label"),
				r.words(nodeOf(point)["value"], depth)})
		}
	}
	return markdownTable(grid)
}

// markdownTable is a table whose first row is its heading, "" for one without cells.
func markdownTable(grid [][]string) string {
	width := 0
	for _, row := range grid {
		width = max(width, len(row))
	}
	if width == 0 {
		return ""
	}
	var b strings.Builder
	for i, row := range grid {
		for c := range width {
			cell := ""
			if c < len(row) {
				cell = strings.ReplaceAll(strings.Join(strings.Fields(row[c]), " "), "|", `\|`)
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", width) + "|\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lines joins texts, without empty ones.
func lines(texts ...string) string {
	texts = slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
	return strings.Join(texts, "\n")
}
