package docs

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/failpoint"
)

const architecture = "docs/architecture.md"

var guarantee = regexp.MustCompile("((?:`Test\\w+`(?:, )?)+) in `([\\w/]+)`")

func TestArchitecture_EachGuarantee_NamesTestsThatExist(t *testing.T) {
	t.Parallel()
	guarantees := rows(section(t, read(t, architecture), "## What is guaranteed"))
	if len(guarantees) < 10 {
		t.Errorf("only %d guarantees found", len(guarantees))
	}
	all := declarations{}
	for _, row := range guarantees {
		named := guarantee.FindAllStringSubmatch(row[1], -1)
		if len(named) == 0 {
			t.Errorf("%q names no test", row[0])
		}
		for _, m := range named {
			tests := all.in(t, m[2], "_test.go")
			for _, name := range codes(m[1]) {
				if !tests[name] {
					t.Errorf("%q: %s has no %s", row[0], m[2], name)
				}
			}
		}
	}
}

// identifier matches `package.Name`, and unexported names of two packages: others look like columns and files.
var identifier = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*)$|^(gateway|agents)\.(\w+)$`)

// Pages and the glossary name identifiers of the products by their packages, whichever folder those are in.
func TestPages_IdentifiersNamed_Exist(t *testing.T) {
	t.Parallel()
	folders := map[string][]string{}
	inProducts(t, func(path string, _ *ast.File) {
		dir := filepath.Dir(path)
		if name := filepath.Base(dir); !slices.Contains(folders[name], dir) {
			folders[name] = append(folders[name], dir)
		}
	})
	folders["factrows"] = []string{"pkg/facts/rows"}
	found, all := 0, declarations{}
	walk(t, "docs", func(page string) {
		for _, code := range codes(read(t, page)) {
			m := identifier.FindStringSubmatch(code)
			if m == nil {
				continue
			}
			found++
			declares := func(folder string) bool { return all.in(t, folder, ".go")[m[2]+m[4]] }
			if !slices.ContainsFunc(folders[m[1]+m[3]], declares) {
				t.Errorf("%s: %s does not exist", page, code)
			}
		}
	}, ".md")
	if found < 50 {
		t.Errorf("pages name only %d identifiers", found)
	}
}

// declarations are the names declared in folders, parsed when they are asked for.
type declarations map[string]map[string]bool

func (d declarations) in(t *testing.T, dir, suffix string) map[string]bool {
	t.Helper()
	key := dir + " " + suffix
	if d[key] == nil {
		d[key] = declared(t, dir, suffix)
	}
	return d[key]
}

// declared returns the functions, methods, types and constants of a folder's files with a suffix.
func declared(t *testing.T, dir, suffix string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	walk(t, dir, func(path string) {
		if filepath.Dir(path) != filepath.Clean(dir) || strings.HasSuffix(path, "_test.go") != (suffix == "_test.go") {
			return
		}
		for _, d := range parse(t, path).Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[d.Name.Name] = true
			case *ast.GenDecl:
				for _, name := range specNames(d) {
					names[name] = true
				}
			}
		}
	}, ".go")
	return names
}

func specNames(d *ast.GenDecl) (names []string) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, spec.Name.Name)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

var commit = regexp.MustCompile(`\*\*Commit (\d), ([^*]+)\*\*`)

// The commits of the walk are named like the failpoints around them, so that a reader of one finds
// the other.
func TestArchitecture_SevenCommits_AreNamedAsFailpoints(t *testing.T) {
	t.Parallel()
	commits := commit.FindAllStringSubmatch(strings.ReplaceAll(read(t, architecture), "\n   ", " "), -1)
	if len(commits) != 7 {
		t.Fatalf("%d commits named, want 7", len(commits))
	}
	for i, m := range commits {
		if m[1] != string(rune('1'+i)) {
			t.Errorf("commit %s is at position %d", m[1], i+1)
		}
		for _, verb := range codes(m[2]) {
			if !failpoint.Known(failpoint.Verb(verb).Before()) {
				t.Errorf("commit %s: %s is not a failpoint", m[1], verb)
			}
		}
	}
}
