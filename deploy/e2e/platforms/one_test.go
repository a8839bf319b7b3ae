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

	"arizuko/pkg/daemon"
)

// difference is a feature that not all adapters have: the adapters that have it, and why.
type difference struct{ adapters, why string }

// TestAdapters_Features_AreSharedOrListed compares the three adapters, so that a reader of one knows the others: what
// has the same job has the same name, and every difference is listed here with its reason.
func TestAdapters_Features_AreSharedOrListed(t *testing.T) {
	having := map[string][]string{} // feature → adapters
	for _, a := range daemon.Adapters() {
		all, err := features(filepath.Join("..", "..", "..", a.Name), a.Platform)
		if err != nil {
			t.Fatal(err)
		}
		for feature := range all {
			having[feature] = append(having[feature], a.Name)
		}
	}
	want := differences()
	for _, feature := range slices.Sorted(maps.Keys(having)) {
		slices.Sort(having[feature])
		got := strings.Join(having[feature], " ")
		d, differs := want[feature]
		delete(want, feature)
		switch {
		case len(having[feature]) == len(daemon.Adapters()) && differs:
			t.Errorf("%s: all adapters have it; remove it from the list of differences", feature)
		case len(having[feature]) < len(daemon.Adapters()) && got != d.adapters:
			t.Errorf("%s: only %s has it; expected in %q", feature, got, d.adapters)
		case differs && d.why == "":
			t.Errorf("%s: the reason is missing", feature)
		}
	}
	for feature := range want {
		t.Errorf("%s: no adapter has it", feature)
	}
}

// features lists what can be compared of an adapter: its files and packages, the fields of its
// configuration and of its program, and what its rooms declare.
func features(dir, platform string) (map[string]bool, error) {
	all := map[string]bool{}
	add := func(path, kind string, suffix string) error {
		entries, err := os.ReadDir(filepath.Join(dir, path))
		for _, e := range entries {
			if name := strings.ReplaceAll(e.Name(), platform, "<platform>"); !e.IsDir() && strings.HasSuffix(name, suffix) && !strings.HasSuffix(name, "_test.go") {
				all[kind+" "+name] = true
			} else if e.IsDir() && kind == "file" && name != "internal" && name != "testdata" {
				all["folder "+name] = true
			} else if e.IsDir() && kind == "package" {
				all[kind+" "+name] = true
			}
		}
		return err
	}
	if err := add(".", "file", ""); err != nil {
		return nil, err
	}
	if err := add("internal", "package", ".go"); err != nil {
		return nil, err
	}
	for _, room := range []string{".", "internal/inbound", "internal/outbound", "internal/events", "internal/" + platform + "api"} {
		decls, err := declarations(filepath.Join(dir, room))
		if err != nil {
			return nil, err
		}
		for _, d := range decls {
			describe(all, strings.TrimPrefix(room, "internal/"), d)
		}
	}
	for _, room := range []string{"outbound", "events"} {
		if err := add(filepath.Join("internal", room), room+" file", ".go"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// declarations returns those of a package, without its tests.
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
		err = fmt.Errorf("%s has no package", dir)
	}
	return all, err
}

// describe adds what a declaration of a room adds to the adapter's shape.
func describe(all map[string]bool, room string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		of := receiver(d)
		switch {
		case of == "Sender" && d.Name.IsExported(), of == "Listener" && d.Name.IsExported():
			all[of+" "+d.Name.Name] = true
		case of == "" && room == "." && d.Name.Name == "program":
			programFields(all, d)
		case of == "" && d.Name.IsExported() && (room == "inbound" || room == "outbound"):
			all[room+" "+d.Name.Name] = true
		case of == "" && (d.Name.Name == "Failure" || d.Name.Name == "NewClient"):
			all["api "+d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			switch name := t.Name.Name; {
			case room == "." && name == "Config":
				settings(all, t)
			case room == ".", room == "outbound", room == "inbound" && name == "Self", room == "events" && name == "Listener":
				all["type "+room+" "+name] = true
			}
		}
	}
}

// programFields adds the fields that program sets.
func programFields(all map[string]bool, f *ast.FuncDecl) {
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

// receiver returns the type of a method, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	kind := f.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	name, _ := kind.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// differences lists all differences by feature.
func differences() map[string]difference {
	const (
		tokens   = "Slack needs two tokens, or a token and a secret"
		finds    = "Telegram does not let a bot search for what it has sent"
		shows    = "Slack has no typing indicator for bots: a reaction and a status replace it, and have to be removed"
		streams  = "Slack streams answers in threads: what a stream shows has to be known, since it is only appended to"
		session  = "Discord sends events in sessions of its gateway, and does not repeat those that a bot has missed"
		posts    = "Slack sends events over a socket, or posts them; they contain ids instead of names"
		changes  = "Slack's history shows what was edited, deleted and reacted to while the daemon was down; the others show it in no way, or as events"
		topics   = "Telegram shows the typing indicator of a forum's General topic only if the call names it"
		nameless = "Telegram's votes name the poll, and neither its message nor its chat"
		ownIDs   = "ids in Telegram's private chats and basic groups are each bot's own, so that it matters which bot it is"
	)
	return map[string]difference{
		"outbound NewCeiling":         {"discd teled", "Slack limits no account, only methods and channels"},
		"outbound file find.go":       {"discd slakd", finds},
		"Sender Find":                 {"discd slakd", finds},
		"outbound file typing.go":     {"slakd", shows},
		"Sender EndTyping":            {"slakd", shows},
		"Sender Seeds":                {"slakd", "Slack's polls are voted in by reactions, which the bot sets first"},
		"Sender RemoveStaleMarks":     {"slakd", shows},
		"outbound file stream.go":     {"slakd", streams},
		"type outbound preview":       {"slakd", streams},
		"type outbound previews":      {"slakd", streams},
		"type outbound start":         {"slakd", streams},
		"outbound file session.go":    {"slakd", "Slack has a button that stops an agent, where the app is one"},
		"outbound file thread.go":     {"discd", "Discord's threads are made by a call, Slack's by an answer, and a bot cannot make them on Telegram everywhere"},
		"type outbound entry":         {"discd", "a thread of Discord's is joined, created or taken out of the archive by a call"},
		"type outbound joinedThreads": {"discd", "a thread of Discord's is joined, created or taken out of the archive by a call"},
		"outbound file forms.go":      {"slakd teled", "Discord's one call that works in another form is beside its threads"},
		"type outbound search":        {"slakd", "Slack's rate limits end a search, which goes on later"},
		"type outbound searches":      {"slakd", "Slack's rate limits end a search, which goes on later"},
		"outbound file entities.go":   {"teled", "Telegram's formatting is ranges of the text, which move when a mark is put in front"},

		"outbound file forums.go": {"teled", topics},
		"type outbound forums":    {"teled", topics},
		"type outbound forum":     {"teled", topics},
		"events file menu.go":     {"teled", "Telegram keeps a menu of commands for each kind of chat, with those of others in it; Discord's commands are calls of their own"},
		"events file pastes.go":   {"discd teled", "Telegram's apps cut a long text into several messages, Discord's make a file of it"},
		"events file sockets.go":  {"slakd", "only Slack says how many connections are open"},
		"events file starts.go":   {"discd", "only Discord says how many sessions were begun"},
		"inbound Pastes":          {"discd", "only Discord's apps make a file of a long text"},
		"inbound Files":           {"discd", "a file's URL ends after a day there, and its message has a new one"},
		"outbound file fetch.go":  {"discd", "a file's URL ends after a day there, and its message has a new one"},
		"events file commands.go": {"discd", "Discord takes commands one by one, so they are registered beside the events"},
		"inbound PasteText":       {"discd", "only Discord's apps make a file of a long text"},
		"setting UserApps":        {"slakd", "only on Slack an app can post in the name of its user"},
		"api Failure":             {"discd slakd", "Telegram's failures depend on what getMe says: they are made by its client"},

		"events file gateway.go":   {"discd", session},
		"events file closed.go":    {"discd", session},
		"events file gaps.go":      {"discd", session},
		"events file visible.go":   {"discd", session},
		"events file waiting.go":   {"discd", session},
		"events file bookmarks.go": {"discd", session},
		"events file backfill.go":  {"discd", session},
		"events file votes.go":     {"discd", session},
		"inbound MissedVotes":      {"discd", session},
		"events file socket.go":    {"slakd", posts},
		"events file posts.go":     {"slakd", posts},
		"events file names.go":     {"slakd", posts},
		"Listener Mount":           {"slakd", posts},
		"package bot":              {"teled", ownIDs},
		"type outbound marks":      {"teled", ownIDs},
		"package history":          {"slakd", "Slack keeps no events: what was missed is read from each conversation and thread, in more steps than Discord's"},
		"events file context.go":   {"slakd", "Slack sends a reply without the post that it answers"},
		"events file joins.go":     {"slakd", "the join of Slack's history has another time than that of its event"},
		"inbound Deleted":          {"slakd", changes},
		"inbound Reacted":          {"slakd", changes},
		"inbound ReactionsOf":      {"slakd", changes},
		"inbound Seen":             {"slakd", changes},
		"inbound ShownAfter":       {"slakd", changes},
		"inbound Unreacted":        {"slakd", changes},
		"inbound Quoted":           {"slakd", "Slack sends a reply without the post that it answers"},

		"setting Local":         {"teled", "only Telegram's servers may be run by oneself, with larger files"},
		"setting Token":         {"discd teled", tokens},
		"setting BotToken":      {"slakd", tokens},
		"setting AppToken":      {"slakd", tokens},
		"setting SigningSecret": {"slakd", tokens},

		"inbound NewGuilds": {"discd", "Discord's events name channels by id only, and describe them in events before"},
		"inbound PollRef":   {"teled", nameless},
		"inbound Ballot":    {"teled", nameless},
		"inbound Commands":  {"discd", "Discord offers the commands that a bot has registered"},
		"inbound Command":   {"slakd", "a slash command does not come as an event"},
		"inbound Press":     {"slakd", "a click does not come as an event"},
		"inbound Decode":    {"slakd", "the kind of an event depends on three fields"},
	}
}
