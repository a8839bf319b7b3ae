package browser

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// interactive are the roles of controls. Each control needs a name that no other of its kind has.
var interactive = []string{
	"button", "checkbox", "combobox", "DisclosureTriangle", "link", "listbox", "radio", "searchbox", "spinbutton",
	"switch", "tab", "textbox",
}

// node is a node of the accessibility tree, which screen readers get.
type node struct {
	*accessibility.Node
	children []*node
	foreign  bool // within a log: agents write it
}

func text(v *accessibility.Value) (s string) {
	if v == nil {
		return ""
	}
	if json.Unmarshal(v.Value, &s) != nil {
		return string(v.Value) // a number or a boolean
	}
	return s
}

func (n *node) property(name accessibility.PropertyName) string {
	for _, each := range n.Properties {
		if each.Name == name {
			return text(each.Value)
		}
	}
	return ""
}

// within lists the nodes below, in reading order.
func (n *node) within() (all []*node) {
	for _, child := range n.children {
		all = append(append(all, child), child.within()...)
	}
	return all
}

// shown is the text below.
func (n *node) shown() string {
	var words []string
	for _, each := range n.within() {
		if text(each.Role) == "StaticText" {
			words = append(words, text(each.Name))
		}
	}
	return plainWords(strings.Join(words, " "))
}

// plainWords is a text in lower case, its letters and digits alone.
func plainWords(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
}

// tree is the page's accessibility tree without ignored nodes.
func (p *Tab) tree() *node {
	p.t.Helper()
	answer, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil || len(answer.Nodes) == 0 {
		p.t.Fatalf("accessibility tree: %d nodes, %v", len(answer.Nodes), err)
	}
	byID := map[accessibility.NodeID]*accessibility.Node{}
	for _, each := range answer.Nodes {
		byID[each.NodeID] = each
	}
	var below func(*accessibility.Node, bool) []*node
	below = func(n *accessibility.Node, foreign bool) (found []*node) {
		foreign = foreign || text(n.Role) == "log"
		for _, id := range n.ChildIDs {
			child := byID[id]
			switch {
			case child == nil:
			case child.Ignored:
				found = append(found, below(child, foreign)...)
			case text(child.Role) == "DateTime" || text(child.Role) == "Date" || text(child.Role) == "InputTime":
				found = append(found, &node{child, nil, foreign}) // its parts are the browser's
			default:
				found = append(found, &node{child, below(child, foreign), foreign})
			}
		}
		return found
	}
	return &node{answer.Nodes[0], below(answer.Nodes[0], false), false}
}

// ReaderProblems lists problems for users of a screen reader: in its accessibility tree, controls
// without a name, with the name of another one or without the words that are seen on them, levels of headings that are
// left out, tables without a name or header cells, pictures without a name.
func (p *Tab) ReaderProblems() (problems []string) {
	p.t.Helper()
	all := p.tree().within()
	level, named := 0, map[string]string{}
	for _, n := range all {
		role, name := text(n.Role), text(n.Name)
		switch {
		case slices.Contains(interactive, role):
			problems = append(problems, nameProblems(n, named)...)
		case role == "heading":
			next := int(n.property(accessibility.PropertyNameLevel)[0] - '0')
			if next > level+1 {
				problems = append(problems, fmt.Sprintf("heading %q has level %d after %d", name, next, level))
			}
			level = next
		case role == "table" || role == "grid":
			problems = append(problems, tableProblems(n)...)
		case (role == "image" || role == "img" || role == "graphics-document") && name == "":
			problems = append(problems, "a picture has no name")
		}
	}
	return problems
}

// nameProblems checks the name of a control; named has what the controls before it lead to, by role and name.
func nameProblems(n *node, named map[string]string) (problems []string) {
	role, name := text(n.Role), text(n.Name)
	if strings.TrimSpace(name) == "" {
		return []string{"a " + role + " has no name"}
	}
	target := "another " + role
	if role == "link" {
		target = n.property(accessibility.PropertyNameURL) // links with one name may lead to one page
	}
	if before, ok := named[role+" "+name]; ok && (before != target || role != "link") {
		problems = append(problems, fmt.Sprintf("%s %q has the name of %s", role, name, before))
	}
	named[role+" "+name] = target
	// Speech input finds a control by the words on it. A chart's tab or a field have none of their own.
	if seen := n.shown(); seen != "" && (role == "button" || role == "link" || role == "tab") &&
		!strings.Contains(plainWords(name), seen) {
		problems = append(problems, fmt.Sprintf("%s %q does not say its words %q", role, name, seen))
	}
	return problems
}

func tableProblems(table *node) (problems []string) {
	if text(table.Name) == "" && !table.foreign {
		problems = append(problems, "a table has no name: "+table.shown())
	}
	var heads, widest int
	for _, row := range table.within() {
		if text(row.Role) != "row" {
			continue
		}
		widest = max(widest, len(row.children))
		for _, cell := range row.children {
			if text(cell.Role) == "columnheader" {
				heads++
			}
		}
	}
	if heads < widest || widest == 0 {
		problems = append(problems, fmt.Sprintf("table %q has %d headers over %d columns", text(table.Name), heads,
			widest))
	}
	return problems
}

//go:embed accessible.js
var accessibleScript string

// MarkupProblems lists what the markup lacks for assistive technology: the current page of a navigation, errors that
// are tied to their fields, live regions for messages, labels of fields, a language and a title.
func (p *Tab) MarkupProblems() []string {
	p.t.Helper()
	return Eval[[]string](p, "("+accessibleScript+").markup()")
}

// TargetProblems lists controls that are too small to be hit: less than 24 by 24 CSS pixels, other than links within a
// text (WCAG 2.2, 2.5.8).
func (p *Tab) TargetProblems() []string {
	p.t.Helper()
	return Eval[[]string](p, "("+accessibleScript+").targets()")
}

// CutProblems lists texts that are cut off or lie beside the page, where no scrolling leads to them.
func (p *Tab) CutProblems() []string {
	p.t.Helper()
	return Eval[[]string](p, "("+accessibleScript+").cut()")
}

// ForcedColorProblems lists what is lost when users replace all colours by their own: controls without an edge, and
// current links and tabs that look like others. Set the feature with EmulateMedia first.
func (p *Tab) ForcedColorProblems() []string {
	p.t.Helper()
	return Eval[[]string](p, "("+accessibleScript+").forced()")
}

// maxTabs is how often the Tab key is pressed on one page.
const maxTabs = 1000

// KeyboardProblems presses Tab until the focus has been everywhere, and lists the problems: a control that it does not
// reach or that does not show the focus, an order other than that of reading, a trap.
func (p *Tab) KeyboardProblems() []string {
	p.t.Helper()
	want := Eval[int](p, "(window.keyboard = ("+accessibleScript+").keyboard()).count")
	for n := 0; ; n++ {
		p.TypeKeys(kb.Tab)
		if Eval[bool](p, `window.keyboard.step()`) {
			break
		}
		if n > want+maxTabs {
			return []string{"the focus never leaves the page"}
		}
	}
	return Eval[[]string](p, `window.keyboard.problems()`)
}

// EmulateMedia sets media features, as in "forced-colors", "active"; those that were set before are unset.
func (p *Tab) EmulateMedia(pairs ...string) {
	p.t.Helper()
	var features []*emulation.MediaFeature
	for pair := range slices.Chunk(pairs, 2) {
		features = append(features, &emulation.MediaFeature{Name: pair[0], Value: pair[1]})
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		p.t.Fatalf("emulate %v: %v", pairs, err)
	}
}
