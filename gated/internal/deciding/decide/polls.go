package decide

import (
	"arizuko/pkg/msg"
)

// Ballot has the facts about a vote, or about the end of a poll.
type Ballot struct {
	Poll *msg.StoredPoll // nil if it is not stored
	Vote *msg.Vote       // nil for the end of the poll
	End  *msg.PollEnd    // nil for a vote
}

// CountVote counts a vote of a row.
type CountVote struct {
	Row  int64
	Poll int64
	Vote msg.Vote
}

// EndPoll records that a poll is closed on its platform.
type EndPoll struct {
	Row    int64
	Poll   int64
	Result *msg.PollResult
}

// ballot counts a vote or ends a poll. It waits for nothing, fires no turn and knows no routes: the platform's own
// count is the poll's.
func (w *step) ballot(r *Row) {
	b := r.Ballot
	reason := b.reason(r)
	disposition := msg.Dropped
	switch reason {
	case msg.ReasonVote:
		disposition = msg.Observed
		w.effects = append(w.effects, CountVote{Row: r.ID, Poll: b.Poll.ID, Vote: *b.Vote})
	case msg.ReasonPollEnd:
		disposition = msg.Observed
		w.effects = append(w.effects, EndPoll{Row: r.ID, Poll: b.Poll.ID, Result: b.End.Result})
	}
	w.decideAct(r, disposition, reason)
}

// reason returns how a vote or the end of a poll is decided.
func (b *Ballot) reason(r *Row) msg.Reason {
	switch p := b.Poll; {
	case p == nil:
		return msg.ReasonPollUnknown
	case b.End != nil && p.State == msg.PollClosed && !p.EndPending && (b.End.Result == nil || p.Poll.Result != nil):
		return msg.ReasonPollClosed
	case b.End != nil:
		return msg.ReasonPollEnd
	case !b.Vote.Fits(len(p.Poll.Options)), !b.chooses():
		return msg.ReasonPollUnknown
	case !p.Takes(r.CastAt()):
		return msg.ReasonPollClosed
	}
	return msg.ReasonVote
}

// chooses reports whether a change names an option: only a whole choice may name none.
func (b *Ballot) chooses() bool { return b.Vote.Change == "" || len(b.Vote.Options) > 0 }
