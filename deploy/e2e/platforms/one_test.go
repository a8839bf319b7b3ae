package platforms

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// adapters are the folders that are to be alike, and in each the type that is its platform.
var adapters = map[string]string{"teled": "telegram", "discd": "discord", "slakd": "slack"}

// difference is what not all of the three have, and why.
type difference struct{ who, why string }

// TestTheThreeAreOne walks the three adapters. Who knows one of them knows the others: what has the
// same job has the same name, and what differs stands here with its reason.
func TestTheThreeAreOne(t *testing.T) {
	has := map[string][]string{} // feature → who has it
	for daemon, platform := range adapters {
		all, err := features(filepath.Join("..", "..", "..", daemon), platform)
		if err != nil {
			t.Fatal(err)
		}
		for feature := range all {
			has[feature] = append(has[feature], daemon)
		}
	}
	want := differences()
	for _, feature := range slices.Sorted(maps.Keys(has)) {
		slices.Sort(has[feature])
		who := strings.Join(has[feature], " ")
		d, differs := want[feature]
		delete(want, feature)
		switch {
		case len(has[feature]) == len(adapters) && differs:
			t.Errorf("%s: all have it now, and its difference still stands here", feature)
		case len(has[feature]) < len(adapters) && who != d.who:
			t.Errorf("%s: is in %s alone; expected in %q", feature, who, d.who)
		case differs && d.why == "":
			t.Errorf("%s: nobody says why it is in %s alone", feature, who)
		}
	}
	for feature := range want {
		t.Errorf("%s: nobody has it any more", feature)
	}
}

// features are what can be compared of an adapter: its files, its packages, the names in its
// configuration, how it is run, its types, the methods of its platform, how it listens, and what
// its converters offer.
func features(dir, platform string) (map[string]bool, error) {
	all := map[string]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	packages, err := os.ReadDir(filepath.Join(dir, "internal"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && (name == "conformance_test.go" || !strings.HasSuffix(name, "_test.go")) {
			all["file "+name] = true
		}
	}
	for _, e := range packages {
		all["package "+e.Name()] = true
	}
	root, err := declarations(dir)
	if err != nil {
		return nil, err
	}
	converters, err := declarations(filepath.Join(dir, "internal", "inbound"))
	if err != nil {
		return nil, err
	}
	for _, d := range root {
		describe(all, d, platform)
	}
	for _, d := range converters {
		offer(all, d)
	}
	return all, nil
}

// declarations are those of a package, without its tests.
func declarations(dir string) (all []ast.Decl, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, file.Decls...)
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("there is no package in %s", dir)
	}
	return all, err
}

// describe adds what a declaration of the main package is about.
func describe(all map[string]bool, d ast.Decl, platform string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		switch of := receiver(d); {
		case of == platform:
			all["platform "+d.Name.Name] = true
		case of == "listener" && d.Name.IsExported():
			all["listener "+d.Name.Name] = true
		}
		if d.Recv == nil && d.Name.Name == "program" {
			subcommands(all, d)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if t.Name.Name != platform {
				all["type "+t.Name.Name] = true
			}
			if t.Name.Name == "Config" {
				settings(all, t)
			}
		}
	}
}

// subcommands adds what the program can be told to do: the fields of its literal.
func subcommands(all map[string]bool, f *ast.FuncDecl) {
	ast.Inspect(f, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, e := range literal.Elts {
			if field, ok := e.(*ast.KeyValueExpr); ok {
				all[fmt.Sprint("program ", field.Key)] = true
			}
		}
		return false
	})
}

// settings adds the fields of the configuration; embedded ones have the names of their types.
func settings(all map[string]bool, t *ast.TypeSpec) {
	for _, f := range t.Type.(*ast.StructType).Fields.List {
		for _, name := range f.Names {
			all["setting "+name.Name] = true
		}
		if embedded, ok := f.Type.(*ast.SelectorExpr); ok && len(f.Names) == 0 {
			all["setting "+embedded.Sel.Name] = true
		}
	}
}

// offer adds what the converters' package does for others, and what it knows the bot by.
func offer(all map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			all["inbound "+d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == "Self" {
				all["inbound "+t.Name.Name] = true
			}
		}
	}
}

// receiver is the type that a method is of, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	kind := f.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	name, _ := kind.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// differences are all that there are, by feature.
func differences() map[string]difference {
	const (
		own      = "it speaks the platform's own API"
		tokens   = "Slack asks for two tokens, or for a token and a secret"
		finds    = "Telegram cannot be asked what a bot has sent"
		stranger = "Discord says of a channel only its id where something happens, and what it is once, before"
	)
	return map[string]difference{
		"file entities.go":   {"teled", "Telegram marks stretches of a text, which move where the text gets a mark in front"},
		"file typing.go":     {"slakd", "Slack shows no bot typing: a reaction and a status stand for it, and have to be taken away"},
		"platform EndTyping": {"slakd", "elsewhere the sign goes by itself"},
		"platform signs":     {"slakd", "that what shows it is told of what was shown before"},

		"package telegramapi": {"teled", own},
		"package discordapi":  {"discd", own},
		"package slackapi":    {"slakd", own},
		"package gateway":     {"discd", "Discord's events come on a connection with sessions and heartbeats"},
		"package history":     {"discd", "Discord does not tell again what nobody has heard: it has to be read"},
		"package socket":      {"slakd", "Slack's events come on a socket, each to be acknowledged"},
		"package eventsapi":   {"slakd", "or they are posted, and signed"},
		"package names":       {"slakd", "Slack's events have only the ids of people and channels"},
		"package typing":      {"slakd", "see typing.go"},

		"platform Find":      {"discd slakd", finds},
		"platform search":    {"discd", "where its nonce is too old, a message is looked for in the channel"},
		"platform likeness":  {"slakd", "a file that was sent bears no tag, and is known by its name"},
		"platform upload":    {"slakd", "it takes three calls to send a file"},
		"platform firstPart": {"slakd", "the options of a poll are reactions to its text"},
		"platform address":   {"teled", "an address has three parts, which not all methods take"},
		"platform follow":    {"teled", "a group that becomes a supergroup has another address"},

		"setting Token":         {"discd teled", tokens},
		"setting BotToken":      {"slakd", tokens},
		"setting AppToken":      {"slakd", tokens},
		"setting SigningSecret": {"slakd", tokens},

		"inbound NewGuilds": {"discd", stranger},
		"inbound Commands":  {"discd", "Discord offers the commands that a bot has registered"},
		"inbound Command":   {"slakd", "a slash command does not come as an event"},
		"inbound Decode":    {"slakd", "an event is told apart from others by three fields"},
	}
}
