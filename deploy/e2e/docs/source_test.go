package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
)

// products are the folders whose programs operators run.
var products = append(daemon.Suite(), "pkg", "deploy/launcher", "migrations")

// notRun are folders below them that only tests and tools link.
var notRun = []string{
	"pkg/testkit", "pkg/golden",
	"pkg/adapter/adaptertest", "pkg/adapter/inboundtest", "pkg/adapter/outboundtest",
}

// inProducts calls visit for each source file that daemons are built from.
func inProducts(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	for _, dir := range products {
		walk(t, dir, func(path string) {
			isNotRun := func(dir string) bool { return strings.HasPrefix(path, dir+"/") }
			if !strings.HasSuffix(path, "_test.go") && !slices.ContainsFunc(notRun, isNotRun) {
				visit(path, parse(t, path))
			}
		}, ".go")
	}
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), at(t, path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

// levels are the methods of a logger that take a message and keys with values; the number is the
// position of the first key.
var levels = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
}

// logKeys finds the keys of all log lines: the literal keys of calls of a logger, and of slog.String
// and its like.
func logKeys(t *testing.T) []string {
	t.Helper()
	keys := map[string]bool{}
	inProducts(t, func(_ string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); ok {
				for _, key := range keysOf(method, call.Args) {
					keys[key] = true
				}
			}
			return true
		})
	})
	return slices.Sorted(maps.Keys(keys))
}

func keysOf(method *ast.SelectorExpr, args []ast.Expr) (keys []string) {
	if on, ok := method.X.(*ast.Ident); ok && on.Name == "slog" && len(args) == 2 {
		if key, ok := text(args[0]); ok && levels[method.Sel.Name] == 0 {
			return []string{key}
		}
	}
	first, ok := levels[method.Sel.Name]
	if !ok || len(args) <= first || !isLogger(method.X) {
		return nil
	}
	for i := first; i < len(args); i += 2 {
		if key, ok := text(args[i]); ok {
			keys = append(keys, key)
		} else if _, isCall := args[i].(*ast.CallExpr); isCall { // slog.String and its like take one place
			i--
		}
	}
	return keys
}

// literals returns all string literals in the sources of the daemons.
func literals(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	inProducts(t, func(_ string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(*ast.BasicLit); ok {
				if value, ok := text(e); ok {
					all[value] = true
				}
			}
			return true
		})
	})
	return all
}

// isLogger says whether an expression is a logger by its name: log, x.log, x.Log, slog or slog.New(…).
func isLogger(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.EqualFold(e.Name, "log") || e.Name == "slog" || e.Name == "logger"
	case *ast.SelectorExpr:
		return strings.EqualFold(e.Sel.Name, "log") || strings.EqualFold(e.Sel.Name, "logger")
	case *ast.CallExpr:
		if inner, ok := e.Fun.(*ast.SelectorExpr); ok {
			return inner.Sel.Name == "New" && isLogger(inner.X) || inner.Sel.Name == "With" && isLogger(inner.X)
		}
	}
	return false
}
