package storetest

import (
	"cmp"
	"database/sql"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"arizuko/pkg/golden"
)

// statementText matches the beginning of a statement.
var statementText = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s`)

// CheckStatements compares SQLite's plans of all statements in a package's source with testdata/plans.txt, which the
// flag -update writes. A statement is named after the function that it stands in, with a number from the second one on;
// a constant of the package has its own name. All statements must be constant. On a server, no statement may read a
// table from one end to the other unless SQLite does the same.
func CheckStatements(t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite3", File(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var text strings.Builder
	plans := map[string][2]string{}
	for _, s := range packageStatements(t) {
		checkText(t, s.name, s.text)
		steps := plan(t, db, s.text)
		plans[s.name] = [2]string{s.text, steps}
		fmt.Fprintf(&text, "%s: %.72s\n", s.name, strings.Join(strings.Fields(s.text), " "))
		if steps != "" {
			fmt.Fprintf(&text, "\t%s\n", strings.ReplaceAll(steps, "\n", "\n\t"))
		}
	}
	golden.Compare(t, filepath.Join("testdata", "plans.txt"), text.String())
	if Server() != "" {
		checkServerPlans(t, plans)
	}
}

type statement struct{ name, text string }

// packageStatements returns the statements of the package in the current folder, sorted by name.
func packageStatements(t *testing.T) (all []statement) {
	t.Helper()
	files := parseFolder(t, ".")
	known := constants{"": packageConstants(files),
		"store":    packageConstants(parseFolder(t, folderOf(t, "store"))),
		"factrows": packageConstants(parseFolder(t, folderOf(t, "facts/rows")))}
	for name, value := range known[""] {
		if text, ok := known.text(value); ok && statementName.MatchString(name) && statementText.MatchString(text) {
			all = append(all, statement{name, text})
		}
	}
	for _, file := range files {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				all = append(all, known.statementsOf(t, fn)...)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b statement) int {
		nameA, _, _ := strings.Cut(a.name, " ")
		nameB, _, _ := strings.Cut(b.name, " ")
		return cmp.Compare(nameA, nameB)
	})
	return all
}

// folderOf is a folder of pkg, whose constants the statements of other packages have as parts.
func folderOf(t *testing.T, name string) string {
	t.Helper()
	folder := "."
	for range 10 {
		if path := filepath.Join(folder, "pkg", name); isFolder(path) {
			return path
		}
		folder = filepath.Join("..", folder)
	}
	t.Fatal("no folder pkg above the package with ", name)
	return ""
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// parseFolder parses the source of the package in a folder, without its tests.
func parseFolder(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// constants has the values of constants by package and name; the package itself is "".
type constants map[string]map[string]ast.Expr

func packageConstants(files []*ast.File) map[string]ast.Expr {
	values := map[string]ast.Expr{}
	for _, file := range files {
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.CONST {
				addConstants(values, decl)
			}
		}
	}
	return values
}

func addConstants(values map[string]ast.Expr, decl *ast.GenDecl) {
	for _, s := range decl.Specs {
		spec := s.(*ast.ValueSpec)
		for i, value := range spec.Values {
			values[spec.Names[i].Name] = value
		}
	}
}

// statementsOf returns the statements that stand in a function.
func (c constants) statementsOf(t *testing.T, fn *ast.FuncDecl) (all []statement) {
	t.Helper()
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		expr, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		switch expr.(type) {
		case *ast.BasicLit, *ast.BinaryExpr:
		default:
			return true
		}
		text, constant := c.text(expr)
		if !statementText.MatchString(text) {
			return !constant
		}
		if !constant {
			t.Errorf("%s: the statement %q is not constant", fn.Name.Name, text)
		}
		name := fn.Name.Name
		if n := len(all); n > 0 {
			name += " " + strconv.Itoa(n+1)
		}
		all = append(all, statement{name, text})
		return false
	})
	return all
}

// text returns the text of an expression; of one that is not constant, its beginning.
func (c constants) text(expr ast.Expr) (text string, constant bool) {
	switch e := expr.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return c.text(e.X)
	case *ast.BinaryExpr:
		before, ok := c.text(e.X)
		if !ok || e.Op != token.ADD {
			return before, false
		}
		after, ok := c.text(e.Y)
		return before + after, ok
	case *ast.Ident:
		if value, ok := c[""][e.Name]; ok {
			return c.text(value)
		}
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok && c[pkg.Name][e.Sel.Name] != nil {
			inside := maps.Clone(c)
			inside[""] = c[pkg.Name]
			return inside.text(c[pkg.Name][e.Sel.Name])
		}
	}
	return "", false
}
