package inboundtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

// Sent is something that a user sends, and what it was converted into: a line of a page's table.
type Sent struct {
	What string // it is, as in "a sticker"
	Why  string // the agent gets nothing, or less than was sent; required where it gets nothing
	In   adapter.Inbound
}

// CheckTable fails the test unless the page at path holds the table of what a user sends and what the agent gets of
// it, between the comments `<!-- sent:start -->` and `<!-- sent:end -->`, and each line without a row has a reason.
// With the test flag -update it rewrites the page instead.
func CheckTable(t testing.TB, path string, all []Sent) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| a user sends | the agent gets | why |\n|---|---|---|\n")
	for _, s := range all {
		if len(s.In.Messages) == 0 && s.Why == "" {
			t.Errorf("%s: no row, and no reason why", s.What)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(s.What), s.got(), cell(s.Why))
	}
	golden.CompareSection(t, filepath.FromSlash(path), "sent", b.String())
}

// got is what the agent gets, as a cell.
func (s Sent) got() string {
	var parts []string
	for _, m := range s.In.Quoted {
		what := "the answered message: "
		if len(s.In.Messages) == 0 {
			what = "the message: "
		}
		parts = append(parts, what+rowOf(m))
	}
	for _, m := range s.In.Messages {
		parts = append(parts, rowOf(m))
	}
	for _, th := range s.In.Threads {
		if th.Title != "" {
			parts = append(parts, "the thread's title: "+code(th.Title))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "<br>")
}

// rowOf are the words, the quote and the files of a row.
func rowOf(m *msg.Message) string {
	var parts []string
	if m.Quote != "" {
		parts = append(parts, "quoted: "+code(m.Quote))
	}
	if m.Content != "" {
		parts = append(parts, code(m.Content))
	}
	for _, a := range m.Attachments {
		parts = append(parts, "the file "+code(a.Name))
	}
	text := strings.Join(parts, "<br>")
	if plain := []string{msg.VerbMessage, msg.VerbMention, msg.VerbReply}; !slices.Contains(plain, m.Verb) {
		text = strings.TrimSpace(m.Verb + " " + text)
	}
	return text
}

// code is a text as code, a span for each of its lines.
func code(text string) string {
	var spans []string
	for line := range strings.SplitSeq(text, "\n") {
		fence := "`"
		for strings.Contains(line, fence) {
			fence += "`"
		}
		if len(fence) > 1 { // a backtick at an end needs a blank
			line = " " + line + " "
		}
		if strings.TrimSpace(line) != "" {
			spans = append(spans, fence+cell(line)+fence)
		}
	}
	return strings.Join(spans, "<br>")
}

// cell is a text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
