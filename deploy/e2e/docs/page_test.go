// Package docs keeps the pages under docs/ true: it compares their lists with the code, the schema
// and the files they describe. It starts no process.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// at is the full path of a file of the repository, given its path from the top folder. It is not
// cleaned: below this module's folder Go's test cache notices when a file changes, elsewhere it
// does not.
func at(t *testing.T, path string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return here + "/../../../" + path
}

// skipped are folders that hold no page and no source of ours.
var skipped = map[string]bool{"node_modules": true, "testdata": true, "bin": true, "data": true, ".git": true}

// walk calls visit for each file of the repository below dir with one of the extensions. Paths are
// relative to the top folder.
func walk(t *testing.T, dir string, visit func(path string), extensions ...string) {
	t.Helper()
	entries, err := os.ReadDir(at(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		hasSuffix := func(extension string) bool { return strings.HasSuffix(path, extension) }
		switch {
		case entry.IsDir() && !skipped[entry.Name()]:
			walk(t, path, visit, extensions...)
		case !entry.IsDir() && slices.ContainsFunc(extensions, hasSuffix):
			visit(path)
		}
	}
}

// read returns the content of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(at(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// section returns the text below a heading, up to the next heading of the same or a higher level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut("\n"+page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("no heading %q", heading)
	}
	level := strings.Index(heading, " ")
	next := regexp.MustCompile(`(?m)^#{1,` + string(rune('0'+level)) + `} `)
	if end := next.FindStringIndex(rest); end != nil {
		return rest[:end[0]]
	}
	return rest
}

// rows returns the cells of all table rows in a text but the headings and the lines below them.
func rows(text string) (all [][]string) {
	heading := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			heading = true
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case heading:
			heading = false
		case strings.Trim(line, "|-: ") == "":
		default:
			all = append(all, cells)
		}
	}
	return all
}

var quoted = regexp.MustCompile("`([^`]+)`")

// codes returns the backquoted parts of a text.
func codes(text string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
