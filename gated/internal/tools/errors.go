package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxErrorHead and maxErrorTail bound the text of an error, in characters: the SDK's repeat arguments, which may
	// be the whole request, and name the problem at their end.
	maxErrorHead = 1500
	maxErrorTail = 500
)

// shortErrors cuts errors that the model, or its program, is to read.
func shortErrors(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if tool, ok := result.(*mcp.CallToolResult); ok && tool != nil && tool.IsError {
			for _, content := range tool.Content {
				if text, ok := content.(*mcp.TextContent); ok {
					text.Text = short(plainArguments(text.Text))
				}
			}
		}
		var wire *jsonrpc.Error
		if errors.As(err, &wire) {
			return result, &jsonrpc.Error{Code: wire.Code, Message: short(wire.Message), Data: wire.Data}
		}
		if err != nil && short(err.Error()) != err.Error() {
			err = errors.New(short(err.Error()))
		}
		return result, err
	}
}

// short leaves the beginning and the end of a long text.
func short(text string) string {
	if len(text) <= maxErrorHead+maxErrorTail {
		return text
	}
	all := []rune(text)
	if len(all) <= maxErrorHead+maxErrorTail {
		return text
	}
	return string(all[:maxErrorHead]) + " […] " + string(all[len(all)-maxErrorTail:])
}

// The SDK's errors about arguments that do not fit a tool's schema begin so, and name places in the schema, from the
// outermost on: "validating root: validating /properties/text: minLength: …".
const badArguments = `validating "arguments": `

var schemaPlace = regexp.MustCompile(`^validating (\S+): `)

// plainArguments words such an error for the model; any other text stays as it is.
func plainArguments(text string) string {
	problem, ok := strings.CutPrefix(text, badArguments)
	if !ok {
		return text
	}
	argument := "the arguments"
	for at := schemaPlace.FindStringSubmatch(problem); at != nil; at = schemaPlace.FindStringSubmatch(problem) {
		argument, problem = argumentAt(at[1]), problem[len(at[0]):]
	}
	if names, ok := strings.CutPrefix(problem, "unexpected additional properties "); ok {
		return fmt.Sprintf("%s must not have %s, which the tool does not know", argument, strings.Trim(names, "[]"))
	}
	keyword, detail, _ := strings.Cut(problem, ": ")
	last := detail[strings.LastIndexByte(detail, ' ')+1:]
	if n, err := strconv.ParseFloat(last, 64); err == nil {
		last = strconv.FormatFloat(n, 'f', -1, 64)
	}
	switch {
	case keyword == "required":
		return argument + " must have " + strings.Trim(strings.TrimPrefix(detail, "missing properties: "), "[]")
	case keyword == "enum":
		return argument + " must be one of " + strings.TrimSuffix(detail[strings.LastIndexByte(detail, '[')+1:], "]")
	case strings.HasPrefix(keyword, "min") && last == "1" && keyword != "minimum":
		return argument + " must not be empty"
	}
	words, known := map[string]string{
		"type": "be of type %s", "minimum": "be at least %s", "maximum": "be at most %s",
		"minLength": "have at least %s characters", "maxLength": "have at most %s characters",
		"minItems": "have at least %s entries", "maxItems": "have at most %s entries",
	}[keyword]
	if !known {
		return argument + ": " + problem
	}
	return argument + " must " + fmt.Sprintf(words, strings.Trim(last, `"`))
}

// argumentAt names the argument that a place in a schema is about.
func argumentAt(place string) string {
	parts := strings.Split(strings.Trim(place, "/"), "/")
	name := ""
	for i := 1; i < len(parts); i++ {
		switch {
		case parts[i-1] == "properties":
			name = strings.TrimPrefix(name+"."+parts[i], ".")
		case parts[i] == "items":
			name += "[]"
		}
	}
	if name == "" {
		return "the arguments"
	}
	return name
}
