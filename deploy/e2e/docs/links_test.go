package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	external = regexp.MustCompile(`^[a-z]+:`)
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	marks    = strings.NewReplacer("`", "", "*", "", "[", "", "]", "")
	target   = regexp.MustCompile(`\]\([^)]*\)`)
)

func TestLinks_Relative_Resolve(t *testing.T) {
	t.Parallel()
	pages := 0
	walk(t, ".", func(path string) {
		pages++
		for _, m := range link.FindAllStringSubmatch(withoutCode(read(t, path)), -1) {
			to := m[1] + m[2]
			if !external.MatchString(to) {
				checkLink(t, path, to)
			}
		}
	}, ".md")
	if pages < 10 {
		t.Errorf("only %d pages found: is the top folder right?", pages)
	}
}

func checkLink(t *testing.T, page, to string) {
	t.Helper()
	file, anchor, _ := strings.Cut(to, "#")
	path := page
	if file != "" {
		path = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(at(t, path)); err != nil {
		t.Errorf("%s: link to %s: no such file", page, to)
		return
	}
	if anchor != "" && strings.HasSuffix(path, ".md") && !anchors(read(t, path))[anchor] {
		t.Errorf("%s: link to %s: no such heading", page, to)
	}
}

// withoutCode removes fenced blocks and inline code, in which nothing is a link.
func withoutCode(page string) string {
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(fence.ReplaceAllString(page, ""), "")
}

// anchors are the names that forges give to a page's headings.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(fence.ReplaceAllString(page, "")) {
		heading := strings.TrimLeft(line, "#")
		if heading != line && strings.HasPrefix(heading, " ") {
			all[anchor(strings.TrimSpace(heading))] = true
		}
	}
	return all
}

func anchor(heading string) string {
	heading = marks.Replace(target.ReplaceAllString(heading, ""))
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}

func TestIndex_EveryPage_IsListed(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/README.md")
	walk(t, "docs", func(path string) {
		name, err := filepath.Rel("docs", path)
		if err != nil {
			t.Fatal(err)
		}
		if name != "README.md" && filepath.Dir(name) == "." && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}, ".md")
	walk(t, ".", func(path string) {
		name, err := filepath.Rel("docs", path)
		if err != nil {
			t.Fatal(err)
		}
		if name != "README.md" && filepath.Base(path) == "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", path)
		}
	}, "README.md")
}
