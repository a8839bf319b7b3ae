// Package mcp tests gated's tools with clients of MCP that others have written: the inspector of the MCP project,
// and its conformance suite for servers.
package mcp
