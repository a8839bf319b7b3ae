package tools

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/golden"

	"github.com/google/jsonschema-go/jsonschema"
)

func TestPage_IsDocsToolsPage(t *testing.T) {
	t.Parallel()
	golden.Compare(t, "../../../docs/reference/tools.md", toolsPage())
}

// toolsPage is the reference of all tools, in markdown: docs/reference/tools.md.
func toolsPage() string {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, maxConcurrentCalls, callTimeout/time.Second, maxActing, maxTurnBytes>>10, maxQueuedCalls,
		maxParkedCalls, maxCallBody>>10)
	b.WriteString("| tool | does | hints |\n|---|---|---|\n")
	for _, t := range Registry() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", t.Name, t.Name, t.Title, hints(t.Kind))
	}
	seen := map[string]string{}
	for _, t := range Registry() {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", t.Name, t.Description)
		(&fieldList{out: &b, required: "required"}).write("Arguments", t.input)
		(&fieldList{out: &b, optional: "optional", tool: t.Name, seen: seen}).write("Result", t.output)
		fmt.Fprintf(&b, "\n```json\n%s\n```\n", exampleID.ReplaceAllString(t.example(), "412"))
	}
	return b.String()
}

const pageHead = `<!-- Generated from gated/internal/tools: go test ./gated/internal/tools -update -->

# Tools of agents

gated serves these tools to its agents by MCP over streamable HTTP at ` + "`GATED_MCP_ADDR`, path `/mcp`" + `. An agent gets the URL
and a bearer token in its [start line](../agent-protocol.md#lines-in). The token ends with the run, and reaches the run's group and
the groups below it.

- A call belongs to the **turn at work**, the run's oldest unanswered one. Without an open turn, calls are refused.
- Calls that change something are **stored with their result**. If a retried turn makes the same call with equal arguments again,
  it gets the first result and changes nothing. Several equal calls in one attempt all count.
- A refusal is a result with ` + "`isError`" + `, whose text says what to do instead. Unknown fields are refused; null means left out.
- A run has at most %d calls at work, each for at most %d s. A turn can change something %d times, and store %d KiB by it: each call
  counts with the size of its arguments, a broadcast once for each chat. %d more calls wait, and %d wait for a user or a download.
  Any more are refused with status 429 and ` + "`Retry-After`" + `. A request has at most %d KiB and is no batch.

`

func hints(k Kind) string {
	var all []string
	for _, h := range []struct {
		holds bool
		name  string
	}{{k.ReadOnly, "reads only"}, {k.Destructive, "may remove"}, {k.Idempotent, "repeatable"}} {
		if h.holds {
			all = append(all, h.name)
		}
	}
	return strings.Join(all, ", ")
}

// fieldList writes the fields of a schema.
type fieldList struct {
	out                *strings.Builder
	required, optional string // words for fields that are, none if empty
	tool               string
	seen               map[string]string // the lines of large objects, and where they are described first; nil: nowhere
}

func (f *fieldList) write(title string, s *jsonschema.Schema) {
	if len(s.Properties) == 0 {
		fmt.Fprintf(f.out, "\n%s: none.\n", title)
		return
	}
	fmt.Fprintf(f.out, "\n%s:\n\n", title)
	f.lines("", s)
}

// lines writes the lines of an object, or where an equal one is described.
func (f *fieldList) lines(path string, s *jsonschema.Schema) {
	const large = 6 // fields
	if f.seen != nil && len(s.Properties) >= large {
		var own strings.Builder
		(&fieldList{out: &own, required: f.required, optional: f.optional}).lines("", s)
		if first, ok := f.seen[own.String()]; ok {
			fmt.Fprintf(f.out, "- `%s…`: as in %s\n", path, first)
			return
		}
		f.seen[own.String()] = fmt.Sprintf("[`%s`](#%s)", f.tool, f.tool)
	}

	names := s.PropertyOrder
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.Properties))
	}
	for _, name := range names {
		field := s.Properties[name]
		need := f.optional
		if slices.Contains(s.Required, name) {
			need = f.required
		}
		if need != "" {
			need = ", " + need
		}
		fmt.Fprintf(f.out, "- `%s%s` (%s%s): %s\n", path, name, typeOf(field), need, field.Description)
		if field.Items != nil {
			f.lines(path+name+"[].", field.Items)
		}
		f.lines(path+name+".", field)
	}
}

// typeOf is a field's type with its bounds.
func typeOf(s *jsonschema.Schema) string {
	text := s.Type
	var bounds []string
	between := func(least, most *int, what string) {
		switch {
		case least != nil && most != nil && *least > 0:
			bounds = append(bounds, fmt.Sprintf("%d to %d %s", *least, *most, what))
		case most != nil:
			bounds = append(bounds, fmt.Sprintf("at most %d %s", *most, what))
		}
	}
	between(s.MinLength, s.MaxLength, "characters")
	between(s.MinItems, s.MaxItems, "entries")
	switch {
	case s.Minimum == nil || s.Maximum == nil:
	case *s.Maximum >= 1<<53: // the largest id
		bounds = append(bounds, "from "+number(*s.Minimum))
	default:
		bounds = append(bounds, number(*s.Minimum)+" to "+number(*s.Maximum))
	}
	if len(s.Enum) > 0 {
		var words []string
		for _, word := range s.Enum {
			words = append(words, fmt.Sprintf("`%v`", word))
		}
		bounds = append(bounds, strings.Join(words, ", "))
	}
	if len(bounds) > 0 {
		text += ": " + strings.Join(bounds, "; ")
	}
	return text
}

// exampleID is a placeholder of an example's id, which tests fill in.
var exampleID = regexp.MustCompile(`OWN_[A-Z]+\b`)

// number is a bound without an exponent.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
