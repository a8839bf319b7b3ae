// Package failpoint names the points in the life of a message where tests crash a daemon to prove
// what survives. Only programs built with the tag failpoints crash: with FAILPOINT=<point>[:n] they
// kill themselves with SIGKILL when they reach the point for the nth time, by default the first.
// FAILPOINT_CLOCK=<file> sets their clock ahead by the seconds in the file, and with
// FAILPOINT_TRACE=<file> they append to it when they reach which point. In all other programs the
// calls do nothing.
package failpoint

import "slices"

// Point is a named crash point.
type Point string

// Points that are not next to a commit.
const (
	Read       Point = "read"       // gated has read undecided rows
	Resolved   Point = "resolved"   // gated has routd's answers about them
	Spawned    Point = "spawned"    // an agent's process is started, not recorded yet
	Piping     Point = "piping"     // a turn is stored for a running agent, not sent to it yet
	Framed     Point = "framed"     // an agent has answered, the answer is not stored yet
	Exited     Point = "exited"     // an agent's process has ended, not recorded yet
	Recovering Point = "recovering" // agents of the previous gated are killed, their turns not requeued yet
	Restored   Point = "restored"   // the files of a turn are as before it, its rows not yet
	Checkpoint Point = "checkpoint" // the write-ahead log is copied, not restarted yet
	Answering  Point = "answering"  // routd has decided where rows go, not answered yet
	Delivered  Point = "delivered"  // routd has read delivery changes, not applied them yet
	Received   Point = "received"   // an adapter has received an event, not stored it yet
	Sending    Point = "sending"    // an adapter has recorded that it sends a part, not sent it yet
	Sent       Point = "sent"       // a part is sent, not recorded yet
	Previewing Point = "previewing" // an adapter has stored that it makes a preview, not made it yet
	Previewed  Point = "previewed"  // a preview is made, its id not stored yet
	Unshown    Point = "unshown"    // the message of a preview is deleted, that is not stored yet
	Requested  Point = "requested"  // gated has onbod's answer about a chat, not decided its rows yet
	Pressed    Point = "pressed"    // a user's press of a button is stored, the platform has no answer to it yet
	Connected  Point = "connected"  // onbod knows that routd has connected a chat, not stored the approval yet
)

// Points of the transcription of an audio file.
const (
	Transcribing Point = "transcribing" // the command is started
	Transcribed  Point = "transcribed"  // the command has ended, the transcript is not stored yet
)

// Verb is a change of the database in the life of a message, with a point before its commit and
// one after.
type Verb string

// The verbs.
const (
	PutMessage     Verb = "put-message"
	Decide         Verb = "decide"
	PutTurn        Verb = "put-turn"
	TakeTurn       Verb = "take-turn"
	StartRun       Verb = "start-run"
	RecordProcess  Verb = "record-process"
	AnswerTurn     Verb = "answer-turn"
	EndTurn        Verb = "end-turn"
	RequeueTurn    Verb = "requeue-turn"
	EndRun         Verb = "end-run"
	ClaimOutbound  Verb = "claim-outbound"
	PutDelivery    Verb = "put-delivery"
	SettleOutbound Verb = "settle-outbound"
	PutEngagement  Verb = "put-engagement"
	PutCursor      Verb = "put-cursor"
	Pin            Verb = "pin"
	ResetSession   Verb = "reset-session"
	CancelTurn     Verb = "cancel-turn"
	TakeSystem     Verb = "take-system" // a turn claims system messages for its prompt
	ChangeContent  Verb = "change-content"
	PutRequest     Verb = "put-request"    // a chat asks to be connected
	NoteApproval   Verb = "note-approval"  // an operator approves, the chat is not connected yet
	ConnectChat    Verb = "connect-chat"   // routd makes the group and the routes of an approved chat
	TakeUp         Verb = "take-up"        // rows that waited for an approval are undecided again
	DecideRequest  Verb = "decide-request" // a request ends
	PutToolCall    Verb = "put-tool-call"  // a tool's change, with its result
	FireReminder   Verb = "fire-reminder"  // a slot of a reminder becomes a message
	PutBroadcast   Verb = "put-broadcast"  // a page of a broadcast's messages
	PutVote        Verb = "put-vote"
	EndPoll        Verb = "end-poll"      // the end of a poll is queued
	PutProgress    Verb = "put-progress"  // an agent's report about its work
	PutAsk         Verb = "put-ask"       // a question, with the message that shows it
	AnswerAsk      Verb = "answer-ask"    // a user's answer closes a question
	ExpireAsk      Verb = "expire-ask"    // a question ends without an answer
	BeginPreview   Verb = "begin-preview" // the message of a preview is going to be made
	KeepPreview    Verb = "keep-preview"  // the id of that message
	EndPreview     Verb = "end-preview"   // a preview is removed, or lost
	PutReceipt     Verb = "put-receipt"   // a request of an agent, which is asked about or going to be sent
	EndReceipt     Verb = "end-receipt"   // it is going to be sent, or has ended
	PutUndo        Verb = "put-undo"      // a turn is going to be taken back
	EndUndo        Verb = "end-undo"      // it is taken back, or was refused
)

// Points of a group's files, when a turn begins or ends and when it is taken back.
const (
	UndoScanned Point = "undo-scanned" // the folder is compared with its last state, the difference not stored yet
	UndoStaged  Point = "undo-staged"  // the files are written beside, the journal is not
	UndoBegun   Point = "undo-begun"   // the journal is written, no file is changed yet
	UndoMoving  Point = "undo-moving"  // a file is going to be changed
	UndoMoved   Point = "undo-moved"   // all files are changed, that is not stored yet
)

// The verbs of the transcription of an audio file.
const (
	HoldTranscript Verb = "hold-transcript" // when the turn starts without the transcript
	EndTranscript  Verb = "end-transcript"  // the transcript, or why there is none
)

// Before is the point where the change is made, not committed yet.
func (v Verb) Before() Point { return Point(v) + ".before" }

// After is the point where the change is committed, and the caller does not have the result yet.
func (v Verb) After() Point { return Point(v) + ".after" }

// All lists every point.
func All() []Point {
	all := []Point{
		Read, Resolved, Spawned, Piping, Framed, Exited, Recovering, Restored, Checkpoint, Answering, Delivered,
		Received,
		Sending, Sent, Pressed, Connected, Requested,
		Previewing, Previewed, Unshown, Transcribing, Transcribed,
		UndoScanned, UndoStaged, UndoBegun, UndoMoving, UndoMoved,
	}
	for _, v := range []Verb{
		PutMessage, Decide, PutTurn, TakeTurn, StartRun, RecordProcess, AnswerTurn, EndTurn, RequeueTurn, EndRun,
		ClaimOutbound, PutDelivery, SettleOutbound, PutEngagement, PutCursor, Pin, ResetSession, CancelTurn, TakeSystem,
		ChangeContent,
		PutRequest, NoteApproval, ConnectChat, DecideRequest, TakeUp, PutToolCall, FireReminder, PutBroadcast, PutVote,
		EndPoll, PutProgress, PutAsk, AnswerAsk, ExpireAsk,
		BeginPreview, KeepPreview, EndPreview, HoldTranscript, EndTranscript, PutReceipt, EndReceipt, PutUndo, EndUndo,
	} {
		all = append(all, v.Before(), v.After())
	}
	return all
}

// Known reports whether a point of that name exists.
func Known(p Point) bool { return slices.Contains(All(), p) }
