package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRender takes the golden files' sources and pieces of hostile text as its seeds.
func FuzzRender(f *testing.F) {
	sources, err := filepath.Glob("testdata/*.md")
	if err != nil {
		f.Fatal(err)
	}
	for _, source := range sources {
		raw, err := os.ReadFile(source)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw), uint16(100))
	}
	for _, bit := range bits {
		f.Add(bit, uint16(64))
		f.Add(strings.Repeat(bit+"a", 40), uint16(80))
	}
	f.Fuzz(func(t *testing.T, text string, limit uint16) {
		if err := check(text, max(64, int(limit))); err != nil {
			t.Error(err)
		}
	})
}
