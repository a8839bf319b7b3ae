package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is an entry of the registry.
type Tool struct {
	Name        string
	Title       string
	Description string // what it does and when to use it, for the model
	Kind        Kind
	// Bounds are limits of the input's fields, by name. Fields of a list's entries are
	// named as in "options[]".
	Bounds map[string]Bound

	input, output *jsonschema.Schema
	add           func(*mcp.Server, *mcp.Tool)
}

// Kind is the effect of a tool on the world.
type Kind struct {
	ReadOnly    bool // it changes nothing
	Destructive bool // it may remove things that a user or an agent made
	Idempotent  bool // a repetition changes nothing more
	Waits       bool // it waits for a user: its calls may take as long as a question is open
	Bulk        bool // it may read much from the database: few such calls run at once
}

// Kinds of tools.
var (
	Reads    = Kind{ReadOnly: true, Idempotent: true}
	Searches = Kind{ReadOnly: true, Idempotent: true, Bulk: true}
	Lists    = Kind{Idempotent: true, Bulk: true} // it makes the entries active
	Adds     = Kind{}
	Sets     = Kind{Idempotent: true}
	Removes  = Kind{Destructive: true, Idempotent: true}
)

// Bound limits a field of an input.
type Bound func(*jsonschema.Schema)

// Text is a bound of a text's length, in characters.
func Text(least, most int) Bound {
	return func(s *jsonschema.Schema) { s.MinLength, s.MaxLength = &least, &most }
}

// OneOf is a bound of a text to words.
func OneOf[T ~string](words ...T) Bound {
	return func(s *jsonschema.Schema) {
		for _, word := range words {
			s.Enum = append(s.Enum, string(word))
		}
	}
}

// Number is a bound of a number.
func Number(least, most float64) Bound {
	return func(s *jsonschema.Schema) { s.Minimum, s.Maximum = &least, &most }
}

// List is a bound of a list's length.
func List(least, most int) Bound {
	return func(s *jsonschema.Schema) { s.MinItems, s.MaxItems = &least, &most }
}

// Registry returns all tools, in the order of the reference page.
func Registry() []Tool {
	return []Tool{
		sendMessage(),
		editMessage(),
		sendFile(),
		react(),
		getAttachment(),
		askUser(),
		pollCreate(),
		pollClose(),
		pollList(),
		resetSession(),
		inspectSession(),
		searchMessages(),
		getThread(),
		broadcast(),
		reminderCreate(),
		reminderList(),
		reminderUpdate(),
		reminderCancel(),
		listActiveContextObjects(),
		resolveReferenceTarget(),
		activateContextObject(),
		delegate(),
		escalate(),
		injectMessage(),
		engage(),
		disengage(),
		forkTopic(),
	}
}

// define completes a tool by its handler. Its schemas are those of In and Out, and
// refuse unknown fields.
func define[In, Out any](t Tool, handle func(ctx context.Context, c *Caller, in In) (Out, error)) Tool {
	t.input, t.output = schemaOf[In](t.Name), schemaOf[Out](t.Name)
	for field, bound := range t.Bounds {
		bound(property(t.Name, t.input, field))
	}
	t.add = func(server *mcp.Server, tool *mcp.Tool) {
		mcp.AddTool(server, tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out,
			error) {
			call, _ := ctx.Value(callKey{}).(*call)
			out, err := handle(ctx, call.caller, in)
			return nil, out, call.end(err)
		})
	}
	return t
}

// spec is the tool as clients list it.
func (t Tool) spec() *mcp.Tool {
	open := false
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.input, OutputSchema: t.output,
		Annotations: &mcp.ToolAnnotations{
			Title: t.Title, ReadOnlyHint: t.Kind.ReadOnly, DestructiveHint: &t.Kind.Destructive,
			IdempotentHint: t.Kind.Idempotent, OpenWorldHint: &open,
		},
	}
}

// schemaOf panics for a type that has no schema, which is a mistake in the program that
// each test of the registry finds.
func schemaOf[T any](tool string) *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("schema of %s: %v", tool, err))
	}
	withoutNull(s)
	return s
}

// withoutNull gives each field one type. The package also allows null for lists and pointers, but some
// clients drop a field whose type is a choice. An argument that is null is the same as none, see [leftOut].
func withoutNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	if s.Items != nil {
		withoutNull(s.Items)
	}
	for _, property := range s.Properties {
		withoutNull(property)
	}
}

// leftOut is arguments without those that are null: some models send null for arguments that they leave out.
func leftOut(arguments json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if !bytes.Contains(arguments, []byte("null")) || json.Unmarshal(arguments, &fields) != nil {
		return arguments // invalid ones are refused later
	}
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	cleaned, err := json.Marshal(fields)
	if err != nil {
		return arguments
	}
	return cleaned
}

// property is the schema of a field, named as "field", "list[]" or "list[].field". It
// panics if there is none: a bound that limits nothing is a mistake in the program.
func property(tool string, s *jsonschema.Schema, path string) *jsonschema.Schema {
	at := s
	for name := range strings.SplitSeq(path, ".") {
		field, isList := strings.CutSuffix(name, "[]")
		if at = at.Properties[field]; at != nil && isList {
			at = at.Items
		}
		if at == nil {
			panic(fmt.Sprintf("%s has no field %q", tool, path))
		}
	}
	return at
}
