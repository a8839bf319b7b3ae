package decide

import "arizuko/pkg/msg"

// impulseGate holds a chat's rows until they are worth a turn: until their
// summed weight reaches the threshold and, with a quiet time, the chat has been quiet
// for that long, or until the first of them has been held for the longest hold. It is
// a fold over the rows: a restart rebuilds it by reading them again. Times are unix ms.
type impulseGate struct {
	ThroughID int64 // the last row added or skipped
	Count     int
	Weight    int
	First     int64 // received_at of the oldest row held
	Last      int64 // and of the newest

	// Settings of the oldest row.
	Threshold int
	MaxHoldMS int64
	QuietMS   int64

	// The group of rows that the oldest row belongs to, "" for none, and when it counts as complete.
	Key      string
	KeyUntil int64
}

// Rows of one group key, such as the pictures of an album, are held until no further
// one has come for groupQuietMS, and for at most groupMaxHoldMS.
const (
	groupQuietMS   = 1000
	groupMaxHoldMS = 5000
)

// add adds a row. The settings of the oldest row hold for all. key is the row's group, which is complete then.
func (g *impulseGate) add(id, receivedAt int64, weight int, i msg.Impulse, key string, until int64) {
	if g.Count == 0 {
		g.First, g.Last = receivedAt, receivedAt
		g.Threshold, g.MaxHoldMS, g.QuietMS = i.Threshold, i.MaxHoldMS, i.QuietMS
		g.Key = key
	}
	g.ThroughID = id
	g.Count++
	g.Weight += weight
	g.Last = max(g.Last, receivedAt)
	if key == g.Key {
		g.KeyUntil = max(g.KeyUntil, until)
	}
}

// DueAt returns when held rows are released, 0 if none is held.
func (g impulseGate) DueAt() int64 {
	if g.Count == 0 {
		return 0
	}
	due := g.First + g.MaxHoldMS
	if g.Weight >= g.Threshold {
		due = min(due, g.Last+g.QuietMS)
	}
	if g.Key != "" {
		due = max(due, g.KeyUntil)
	}
	return due
}

// due reports whether held rows are to be released now.
func (g impulseGate) due(now int64) bool { return g.Count > 0 && g.DueAt() <= now }

// groupUntil is when a group with these first and last rows counts as complete.
func groupUntil(first, last int64) int64 { return min(first+groupMaxHoldMS, last+groupQuietMS) }

// hold adds a row to the gate.
func (w *step) hold(r *Row) {
	w.holdIn(&w.gate, r)
	w.held = append(w.held, r)
}

func (w *step) holdIn(g *impulseGate, r *Row) {
	weight := r.Answer.Impulse.Weight(r.verb())
	if (r.Answer.Engaged || r.Prefix != nil || r.Answer.Reason == msg.ReasonToSticky) &&
		w.f.Default.Weight(r.verb()) > 0 {
		weight = msg.FullWeight // such a row always wants an answer
	}
	// An adapter's clock that is ahead of ours must not hold the row for longer.
	key, until := "", int64(0)
	if r.Summary != nil {
		key = r.GroupKey
		until, _ = r.incomplete(w.f.Now)
	}
	g.add(r.ID, min(r.ReceivedAt, w.f.Now), weight, r.Answer.Impulse, key, until)
}

// release takes held rows through the layers, up to the first of a group that is not
// complete, and returns the gate with the others.
func (w *step) release(which Release) impulseGate {
	rows, through := w.held, w.gate.ThroughID
	weightless := w.gate.Weight == 0
	w.held = nil
	keep := len(rows)
	if which != ReleaseAll {
		keep = w.firstUnfinished(rows)
	}
	if released := rows[:keep]; weightless {
		w.releaseWeightless(released)
	} else {
		for _, r := range released {
			if w.ended {
				return impulseGate{}
			}
			w.leave(r)
		}
	}
	var left impulseGate
	for _, r := range rows[keep:] {
		w.holdIn(&left, r)
	}
	left.ThroughID = through
	w.noteHeldUntil(rows[keep:], left.DueAt())
	return left
}

// firstUnfinished returns the index of the first row whose group may still get rows.
func (w *step) firstUnfinished(rows []*Row) int {
	for i, r := range rows {
		if _, more := r.incomplete(w.f.Now); more {
			return i
		}
	}
	return len(rows)
}

func (w *step) noteHeld(rows []*Row) { w.noteHeldUntil(rows, w.gate.DueAt()) }

func (w *step) noteHeldUntil(rows []*Row, until int64) {
	for _, r := range rows {
		w.add(Hold{Row: r.ID, Until: until})
	}
}
