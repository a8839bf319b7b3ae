// Package tools serves the tools of agents over MCP.
//
// # How to add a tool
//
// A tool, or all of one subject, are a file: input and output structs, whose fields have
// `json` and `jsonschema` tags (the latter is the description that the model reads), a
// function that returns its [Tool] by [define], and its handler. Add the function to
// [Registry], and run `go test ./gated/internal/tools -update` for docs/reference/tools.md.
//
//   - A handler takes the caller and its purpose from the [Caller], never from the
//     arguments. Whatever an argument names must be within the caller's reach:
//     [Caller.CheckFolder], [Caller.CheckChat] and [Caller.CheckMessage] return the
//     refusal.
//   - An acting tool writes in [once]: its effect and its result are one transaction, and
//     a retried turn that repeats the call gets the result of the first, whatever has
//     changed since: so no check that can change its answer comes before. Work that must
//     happen outside of the transaction is the prepare step of [onceAfter], and must be
//     harmless if it is repeated.
//   - [refuse] is an error that the model can act on: it names an alternative. Any
//     other error is logged, and the model reads that the tool has failed.
//   - Each text, number and list of the input has bounds: see Bounds.
//   - examples_test.go has arguments that work in the fixture of the tests, and arguments
//     that must be refused because they name something of another group.
//
// Anything else that a tool needs is a field of [Services], which main sets.
package tools
