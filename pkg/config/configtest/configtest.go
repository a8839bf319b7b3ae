// Package configtest keeps a README's table of variables equal to the configuration struct.
package configtest

import (
	"os"
	"strings"
	"testing"

	"arizuko/pkg/config"
	"arizuko/pkg/golden"
)

const (
	start = "<!-- config:start -->"
	end   = "<!-- config:end -->"
)

// CheckTable fails the test unless the README at path holds config.Table(cfg) between the
// comments `<!-- config:start -->` and `<!-- config:end -->`, and every variable has a doc tag.
// With the test flag -update it rewrites the README instead.
func CheckTable[T any](t testing.TB, path string, cfg T) {
	t.Helper()
	for _, name := range config.Undocumented(cfg) {
		t.Errorf("%s has no doc tag", name)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	right, ok := replaceTable(string(content), config.Table(cfg))
	if !ok {
		t.Fatalf("%s has no %s … %s", path, start, end)
	}
	golden.Compare(t, path, right)
}

// replaceTable returns the README with its table replaced, false if the comments are missing.
func replaceTable(readme, table string) (string, bool) {
	before, rest, ok := strings.Cut(readme, start)
	if !ok {
		return "", false
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", false
	}
	return before + start + "\n\n" + table + "\n" + end + after, true
}
