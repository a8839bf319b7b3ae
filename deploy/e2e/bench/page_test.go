package main

import (
	"os"
	"path/filepath"
	"testing"
)

func writePage(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPage_Write_ReplacesTable(t *testing.T) {
	path := writePage(t, "# Page\n\n<!-- bench:start -->\n\nold table\n\n<!-- bench:end -->\n\nmore text\n")
	for _, table := range []string{"| a |\n", "| b |\n"} {
		p, err := openPage(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.write(table); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if want := "# Page\n\n<!-- bench:start -->\n\n" + table + "\n<!-- bench:end -->\n\nmore text\n"; err != nil || string(got) != want {
			t.Errorf("got %q, error %v, want %q", got, err, want)
		}
	}
}

func TestOpenPage_Default_HasMarkers(t *testing.T) {
	if _, err := openPage(t.Context(), ""); err != nil {
		t.Error(err)
	}
}
