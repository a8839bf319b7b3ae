package tools

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxErrorHead and maxErrorTail are what is left of the text of an error, in characters: the SDK's repeat arguments, which
	// may be the whole request, and say at their end what is wrong.
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
					text.Text = short(text.Text)
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
