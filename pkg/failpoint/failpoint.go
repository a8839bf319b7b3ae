// Package failpoint names the places in the life of a message where a daemon can be made to
// die, so that tests prove what holds when it does. Only programs built with the tag
// failpoints can: FAILPOINT=<point>[:n] has them kill themselves, as kill -9 would, when they come
// to the point for the nth time, the first by default; and FAILPOINT_CLOCK=<file> sets their clock
// ahead by the seconds that stand in the file. In all other programs the calls are empty.
package failpoint

import "slices"

// Point is a place in the path of a message.
type Point string

// Points that lie around no commit.
const (
	Read       Point = "read"       // gated has read undecided rows
	Resolved   Point = "resolved"   // gated has routd's answers about them
	Spawned    Point = "spawned"    // an agent was started, which nobody knows
	Piping     Point = "piping"     // a turn was given to a working agent, which has not been told
	Framed     Point = "framed"     // an agent has answered, which nobody knows
	Exited     Point = "exited"     // an agent is gone, which nobody knows
	Recovering Point = "recovering" // agents of the gated before were ended, their turns not queued again
	Checkpoint Point = "checkpoint" // the write-ahead log is copied, but does not begin again yet
	Answering  Point = "answering"  // routd knows where rows go and has told nobody
	Delivered  Point = "delivered"  // routd has read of deliveries, and made nothing of them
	Received   Point = "received"   // an adapter has an event that it has not stored
	Sending    Point = "sending"    // an adapter has said that it sends a part, and not sent it
	Sent       Point = "sent"       // a part is sent, which nobody knows
)

// Verb is a change of the database, of those that the path of a message is made of, that has a
// point on either side of its commit.
type Verb string

// The verbs.
const (
	PutMessage     Verb = "put-message"
	Decide         Verb = "decide"
	PutTurn        Verb = "put-turn"
	OfferTurn      Verb = "offer-turn"
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
	TakeSystem     Verb = "take-system" // system messages are put into a prompt
	ChangeContent  Verb = "change-content"
)

// Before is the point at which a verb's change is made, but not committed.
func (v Verb) Before() Point { return Point(v) + ".before" }

// After is the point at which a verb's change is committed, and its caller not told.
func (v Verb) After() Point { return Point(v) + ".after" }

// All lists every point.
func All() []Point {
	all := []Point{
		Read, Resolved, Spawned, Piping, Framed, Exited, Recovering, Checkpoint, Answering, Delivered, Received, Sending, Sent,
	}
	for _, v := range []Verb{
		PutMessage, Decide, PutTurn, OfferTurn, StartRun, RecordProcess, AnswerTurn, EndTurn, RequeueTurn, EndRun,
		ClaimOutbound, PutDelivery, SettleOutbound, PutEngagement, PutCursor, Pin, ResetSession, CancelTurn, TakeSystem, ChangeContent,
	} {
		all = append(all, v.Before(), v.After())
	}
	return all
}

// Known reports whether a point of that name exists.
func Known(p Point) bool { return slices.Contains(All(), p) }
