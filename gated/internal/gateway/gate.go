package gateway

import (
	"arizuko/pkg/msg"
)

// impulseGate holds a chat's rows until they are worth a turn: until their summed
// weight reaches the threshold and, with a quiet time, the chat has been quiet for
// that long, or until the first of them has been held for the longest hold. It is
// a fold over the rows: a restart rebuilds it by reading them again.
type impulseGate struct {
	throughID int64 // the last row added or skipped
	count     int
	weight    int
	first     int64 // received_at of the oldest row held, unix ms
	last      int64 // and of the newest
	hold      msg.Impulse
}

// add adds a row. The settings of the oldest row hold for all.
func (g *impulseGate) add(id, receivedAt int64, weight int, i msg.Impulse) {
	if g.count == 0 {
		g.first, g.last, g.hold = receivedAt, receivedAt, i
	}
	g.throughID = id
	g.count++
	g.weight += weight
	g.last = max(g.last, receivedAt)
}

// dueAt returns when the held rows are released, in unix ms; 0 if none is held.
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

// due reports whether the held rows are to be released now.
func (g *impulseGate) due(now int64) bool { return g.count > 0 && g.dueAt() <= now }

// empty is the gate after all rows up to throughID were released.
func empty(throughID int64) impulseGate { return impulseGate{throughID: throughID} }
