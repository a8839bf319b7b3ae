package facts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shellOnly are the facts without a page, each with the reason: only a shell on the server changes these.
func shellOnly() map[string]string {
	const clock, server, tokens = "the machine's clock", "programs that run on the server", "tokens and settings are in the server's environment"
	return map[string]string{
		"clock-ahead": clock, "clock-step": clock, "clock-heartbeat": clock,
		"operators-unset": "found where no rows can be read", "operators-invalid": tokens,
		"competing": server, "connecting": server, "kind": server, "agents": server, "versions": server,
		"backup-failed": server, "backup-none": server, "backup-old": server, "media-full": tokens,
	}
}

// TestFacts_Each_HasAPageOrNeedsAShell walks the source: whatever finds a problem says where to fix it.
func TestFacts_Each_HasAPageOrNeedsAShell(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	all, without := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				walkFacts(f.Body, all, without)
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d facts were found: does the walk still know how they are made?", len(all))
	}
	for kind := range without {
		if shellOnly()[kind] == "" {
			t.Errorf("%s has no page: add one with on, or the reason to shellOnly", kind)
		}
	}
	for kind := range shellOnly() {
		if !without[kind] {
			t.Errorf("%s has a page: remove it from shellOnly", kind)
		}
	}
}

// walkFacts finds the kinds of facts that a function adds, and those that it gives no page.
func walkFacts(body *ast.BlockStmt, all, without map[string]bool) {
	paged := map[ast.Expr]bool{}  // calls of Problem and others whose result is given a page
	last := map[string]ast.Expr{} // assigned to a variable
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if id, ok := n.Lhs[0].(*ast.Ident); ok {
				last[id.Name] = adding(n.Rhs[0])
			}
		case *ast.SelectorExpr:
			if n.Sel.Name != "on" {
				break
			}
			call := adding(n.X)
			if id, ok := call.(*ast.Ident); ok {
				call = last[id.Name]
			}
			paged[call] = true
		}
		return true
	})
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && kindOf(call) != "" {
			all[kindOf(call)] = true
			if !paged[call] {
				without[kindOf(call)] = true
			}
		}
		return true
	})
}

// adding is the call that adds a fact, without those that say more about it.
func adding(e ast.Expr) ast.Expr {
	for {
		call, _ := e.(*ast.CallExpr)
		if call == nil {
			return e
		}
		method, _ := call.Fun.(*ast.SelectorExpr)
		if method == nil || method.Sel.Name != "About" && method.Sel.Name != "Restarts" {
			return e
		}
		e = method.X
	}
}

// kindOf is the kind of the fact that an expression adds, "" if it adds none.
func kindOf(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) < 3 {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Problem", "Warn", "Refuse"}, method.Sel.Name) {
		return ""
	}
	switch kind := call.Args[0].(type) {
	case *ast.BasicLit:
		return strings.Trim(kind.Value, `"`)
	case *ast.BinaryExpr: // "delivery-" and the state
		if lit, ok := kind.X.(*ast.BasicLit); ok {
			return strings.Trim(lit.Value, `"`)
		}
	case *ast.Ident:
		return kind.Name
	}
	return "?"
}
