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
	b.WriteString("| tool | does | reads only | may remove | may be repeated |\n|---|---|---|---|---|\n")
	for _, t := range Registry() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s | %s |\n", t.Name, t.Name, t.Title, yes(t.Kind.ReadOnly),
			yes(t.Kind.Destructive), yes(t.Kind.Idempotent))
	}
	for _, t := range Registry() {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", t.Name, t.Description)
		writeFields(&b, "Arguments", t.input)
		writeFields(&b, "Result", t.output)
		fmt.Fprintf(&b, "\n```json\n%s\n```\n", exampleID.ReplaceAllString(t.Example, "412"))
	}
	return b.String()
}

const pageHead = `<!-- Generated from gated/internal/tools: go test ./gated/internal/tools -update -->

# Tools of agents

Gated serves these tools to the agents that it runs, by MCP over streamable HTTP at ` + "`GATED_MCP_ADDR`, path `/mcp`" + `. An agent
gets the URL and a bearer token in its [start line](../agent-protocol.md#lines-in). The token is the run's: it dies with it,
and reaches the run's group and the groups below it, nothing else.

- A call is on behalf of the **turn at work**, the run's oldest unanswered one. Without an open turn, and once the turn is
  cancelled, calls are refused.
- Calls that change something are **stored with their result**. A retried turn that makes the same call again, with equal
  arguments, gets the result of the first and changes nothing; of several equal calls each counts for itself.
- A refusal is a result with ` + "`isError`" + `, whose text says what to do instead. Unknown fields are refused, and null is a field left out.
- At most %d calls of a run are handled at once, each for at most %d s; a turn can change something %d times,
  and store %d KiB by it: a call counts with the size of its arguments, and a broadcast as often as it has chats.
  %d more wait, %d wait for a user or a download. One too many is refused, unread, with status 429 and ` + "`Retry-After`" + `: try again,
  with fewer at once. A request has at most %d KiB, and is no batch.

`

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func writeFields(b *strings.Builder, title string, s *jsonschema.Schema) {
	if len(s.Properties) == 0 {
		fmt.Fprintf(b, "\n%s: none.\n", title)
		return
	}
	fmt.Fprintf(b, "\n| %s | type | |\n|---|---|---|\n", strings.ToLower(title))
	writeRows(b, "", s)
}

func writeRows(b *strings.Builder, path string, s *jsonschema.Schema) {
	names := s.PropertyOrder
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.Properties))
	}
	for _, name := range names {
		field := s.Properties[name]
		required := ""
		if slices.Contains(s.Required, name) {
			required = ", required"
		}
		fmt.Fprintf(b, "| `%s%s` | %s%s | %s |\n", path, name, typeOf(field), required,
			strings.ReplaceAll(field.Description, "|", `\|`))
		if field.Items != nil {
			writeRows(b, path+name+"[].", field.Items)
		}
		writeRows(b, path+name+".", field)
	}
}

// typeOf is a field's type with its bounds.
func typeOf(s *jsonschema.Schema) string {
	kinds := slices.DeleteFunc(append(slices.Clone(s.Types), s.Type),
		func(t string) bool { return t == "" || t == "null" })
	text := strings.Join(kinds, " or ")
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
	if s.Minimum != nil && s.Maximum != nil {
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
