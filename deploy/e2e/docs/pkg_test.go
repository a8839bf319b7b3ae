package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pkgPage = "pkg/README.md"

// sharedPackages returns the packages of the module pkg, and for each the other packages of this
// repository that it imports. Both are paths below pkg, where they are in it.
func sharedPackages(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	walk(t, "pkg", func(path string) {
		name, _ := strings.CutPrefix(filepath.Dir(path), "pkg/")
		if strings.HasPrefix(name, "testkit") || strings.HasSuffix(path, "_test.go") {
			return
		}
		imports := all[name]
		for _, spec := range parse(t, path).Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if inSuite, ok := strings.CutPrefix(imported, "arizuko/"); ok {
				name, shared := strings.CutPrefix(inSuite, "pkg/")
				if !shared {
					name, _, _ = strings.Cut(name, "/") // another module is one node
				}
				imports = append(imports, name)
			}
		}
		slices.Sort(imports)
		all[name] = slices.Compact(imports)
	}, ".go")
	return all
}

func TestPkg_Tables_ListEveryPackage(t *testing.T) {
	t.Parallel()
	page, _, _ := strings.Cut(read(t, pkgPage), "## Writing")
	var listed, want []string
	for _, row := range rows(page) {
		listed = append(listed, strings.Trim(row[0], "`"))
	}
	for name := range sharedPackages(t) {
		want = append(want, name)
	}
	slices.Sort(listed)
	slices.Sort(want)
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("%s (-packages +page):\n%s", pkgPage, diff)
	}
}

// An edge of the drawing: "store --> failpoint & msg".
var edges = regexp.MustCompile(`(?m)^  (\w+)(?: --> ([\w/ &]+))?$`)

// The kits for tests and packages without imports from this repository need no edge.
func TestPkg_Drawing_IsTheImports(t *testing.T) {
	t.Parallel()
	drawn, want := map[string][]string{}, map[string][]string{}
	for _, m := range edges.FindAllStringSubmatch(read(t, pkgPage), -1) {
		if m[2] != "" {
			drawn[m[1]] = strings.Split(m[2], " & ")
			slices.Sort(drawn[m[1]])
		}
	}
	for name, imports := range sharedPackages(t) {
		if !strings.Contains(name, "/") && len(imports) > 0 {
			want[name] = imports
		}
	}
	if diff := cmp.Diff(want, drawn); diff != "" {
		t.Errorf("%s (-imports +drawn):\n%s", pkgPage, diff)
	}
}
