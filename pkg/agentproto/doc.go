// Package agentproto is the line protocol between gated and an agent process.
//
// gated writes one JSON object a line to the agent's stdin: [Start] first, then
// a [Message] for every further turn, [Interrupt] when the user says stop, and
// end of file when the agent should finish.
//
// The agent answers with frames on stdout, JSON between two delimiters that
// each stand alone on a line:
//
//	---ARIZUKO_OUTPUT_START---
//	{"status":"ok","result":"hello","turnId":"12"}
//	---ARIZUKO_OUTPUT_END---
//
// Everything else an agent prints is log. Both sides use this package: gated
// [Encode], [Scanner] and [Strip]; agents written in Go [ReadInput] and
// [WriteFrame].
package agentproto
