package render_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"arizuko/pkg/golden"
	"arizuko/pkg/render"
)

// between separates parts in golden files.
const between = "\n---8<---\n"

// TestGolden renders testdata/NAME.md for every platform. NAME.LIMIT.md is cut at a limit.
func TestGolden(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.md")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	for _, source := range sources {
		name := strings.TrimSuffix(source, ".md")
		t.Run(filepath.Base(name), func(t *testing.T) {
			raw, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			limit := 4000
			if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(name), ".")); err == nil {
				limit = n
			}
			golden.Compare(t, name+".telegram.json", visible(telegramJSON(t, render.Telegram(text, limit))))
			golden.Compare(t, name+".slack.txt", visible(strings.Join(render.Slack(text, limit), between)))
			golden.Compare(t, name+".discord.txt", visible(strings.Join(render.Discord(text, limit), between)))
			golden.Compare(t, name+".plain.txt", visible(strings.Join(render.Plain(text, limit), between)))
		})
	}
}

// telegramJSON shows each entity with the text that it covers.
func telegramJSON(t *testing.T, parts []render.Formatted) string {
	type entity struct {
		Covers string `json:"covers"`
		render.Entity
	}
	type part struct {
		Lines    []string `json:"lines"`
		Entities []entity `json:"entities"`
	}
	out := []part{}
	for _, p := range parts {
		shown := part{Lines: strings.Split(p.Text, "\n"), Entities: []entity{}}
		for _, e := range p.Entities {
			shown.Entities = append(shown.Entities, entity{covered(p, e), e})
		}
		out = append(out, shown)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// visible replaces gaps by visible text.
func visible(text string) string { return strings.ReplaceAll(text, "\u200b", "{gap}") }
