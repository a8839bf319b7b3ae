package render_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/render"
)

var update = flag.Bool("update", false, "write the golden files")

// between stands in golden files where a part ends.
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
			golden(t, name+".telegram.json", telegramJSON(t, render.Telegram(text, limit)))
			golden(t, name+".slack.txt", strings.Join(render.Slack(text, limit), between))
			golden(t, name+".discord.txt", strings.Join(render.Discord(text, limit), between))
			golden(t, name+".plain.txt", strings.Join(render.Plain(text, limit), between))
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

// golden shows what can't be seen, too.
func golden(t *testing.T, path, got string) {
	t.Helper()
	got = strings.NewReplacer("\u200b", "{gap}").Replace(got)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got\n%s", path, diff)
	}
}
