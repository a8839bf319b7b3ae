package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var decisionFile = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)

func TestDecisions_AreNumberedAndListed(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/decisions/README.md")
	number := 0
	walk(t, "docs/decisions", func(path string) {
		name := filepath.Base(path)
		if name == "README.md" {
			return
		}
		number++
		m := decisionFile.FindStringSubmatch(name)
		if m == nil || m[1] != fmt.Sprintf("%04d", number) {
			t.Errorf("%s: want %04d-words.md", name, number)
			return
		}
		page := read(t, path)
		title, _, _ := strings.Cut(page, "\n")
		prefix := fmt.Sprintf("# %d. ", number)
		if !strings.HasPrefix(title, prefix) {
			t.Errorf("%s: its title %q does not begin with %q", name, title, prefix)
		}
		if line := fmt.Sprintf("| %s | [%s](%s) |", m[1], strings.TrimPrefix(title, prefix), name); !strings.Contains(index, line) {
			t.Errorf("the index does not have the line %s", line)
		}
	}, ".md")
	if listed := strings.Count(index, "\n| 0"); listed != number {
		t.Errorf("the index lists %d decisions, there are %d", listed, number)
	}
}

var namedTest = regexp.MustCompile("`(Test\\w+)`")

func TestPages_TestsNamed_Exist(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	walk(t, ".", func(path string) {
		for _, m := range declaration.FindAllStringSubmatch(read(t, path), -1) {
			tests[m[1]] = true
		}
	}, "_test.go")
	walk(t, ".", func(page string) {
		for _, m := range namedTest.FindAllStringSubmatch(read(t, page), -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}, ".md")
}
