package gateway

import (
	"arizuko/pkg/msg"
)

// impulseGate holds a chat's rows until they are worth a turn: until their
// summed weight reaches the threshold and, where asked for, the chat has gone
// quiet, or until the first of them has been held for long enough. It is a
// fold over the rows, so that a restart rebuilds it by reading them again.
type impulseGate struct {
	throughID int64 // the last row folded in, or passed over for good
	count     int
	weight    int
	first     int64 // received_at of the oldest row held, unix ms
	last      int64 // and of the newest
	hold      msg.Impulse
}

// add folds one more row in. The oldest row's settings hold for all.
func (g *impulseGate) add(id, receivedAt int64, weight int, i msg.Impulse) {
	if g.count == 0 {
		g.first, g.last, g.hold = receivedAt, receivedAt, i
	}
	g.throughID = id
	g.count++
	g.weight += weight
	g.last = max(g.last, receivedAt)
}

// dueAt is when the rows held are to be released, in unix ms; 0 if none are.
func (g *impulseGate) dueAt() int64 {
	if g.count == 0 {
		return 0
	}
	due := g.first + g.hold.MaxHoldMS
	if g.weight >= g.hold.Threshold {
		due = min(due, g.last+g.hold.QuietMS)
	}
	return due
}

// due says whether the rows held are to be released now.
func (g *impulseGate) due(now int64) bool { return g.count > 0 && g.dueAt() <= now }

// empty is the gate after everything up to row id was released.
func empty(throughID int64) impulseGate { return impulseGate{throughID: throughID} }
