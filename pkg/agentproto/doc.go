// Package agentproto is the line protocol between gated and an agent process.
//
// gated writes JSON to the agent's stdin, one object per line: [Start] first, then
// a [Message] for every further turn, an [Answer] for each question that the agent
// asked, [Interrupt] when a user sends /stop, and end of file when the agent should finish.
//
// The agent answers with frames on stdout, JSON between two delimiters that
// each stand alone on a line:
//
//	---ARIZUKO_OUTPUT_START---
//	{"status":"ok","result":"hello","turnId":"12"}
//	---ARIZUKO_OUTPUT_END---
//
// While it works it may say what it does in events, each a line of its own outside of frames:
//
//	---ARIZUKO_EVENT--- {"turnId":"12","type":"text","text":"hel"}
//
// Everything else that an agent prints is logged. Both sides use this package: gated
// [Encode], [Scanner] and [Strip]; agents written in Go [Serve], as in its example, or
// for turns at the same time [ReadInput], [WriteFrame] and [WriteEvent].
package agentproto
