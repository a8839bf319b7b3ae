package decide

import (
	"cmp"

	"arizuko/pkg/msg"
)

// Choice has the facts about an answer to a question of an agent, or about the press of a button that comes too late.
type Choice struct {
	Ask    *msg.Ask // nil if no question of the chat is meant
	Option int      // from 1
	// Late: why the press of a Stop or Undo button comes too late; else it is a command.
	Late msg.Reason
	// Typed: the user wrote it, and did not press a button. Of an open question only; without Ask it may be of several.
	Typed bool
}

// AnswerAsk closes a question with the answer of a row.
type AnswerAsk struct {
	Row     int64
	Ask     int64
	Option  int
	Revives bool // turns may be queued again
}

// answerAsk closes a question of an agent. An answer waits for nothing, fires no turn and knows no routes: the question
// itself says who may answer.
func (w *step) answerAsk(r *Row) {
	c := r.Choice
	reason, disposition := c.Ask.Judge(r.Sender, r.IsBot, c.Option, r.ReceivedAt), msg.Dropped
	if c.Late != "" {
		reason = c.Late
	}
	if reason == msg.ReasonChosen && w.chosen[c.Ask.ID] { // by a row before this one
		reason = msg.ReasonChoiceLate
	}
	if reason == msg.ReasonChosen {
		disposition = msg.Observed
		w.chosen[c.Ask.ID] = true
		w.effects = append(w.effects, AnswerAsk{Row: r.ID, Ask: c.Ask.ID, Option: c.Option,
			Revives: msg.OutlivesTurn(c.Ask.AskID)})
	}
	w.decideAct(r, disposition, reason)
	if c.Typed && disposition == msg.Dropped && !r.ignored() {
		w.reply(r, msg.SourceCommand, cmp.Or(c.refusal(reason), textAskEnded))
	}
}

// textAskEnded answers a text that came too late. To a press the adapter says so.
const textAskEnded = "That question is not open any more."

// textAskUnclear answers a text that matches an option, but doesn't say which question it answers.
const textAskUnclear = "Reply to the question, or press a button."

func (c *Choice) refusal(reason msg.Reason) string {
	switch reason {
	case msg.ReasonChoiceDenied:
		return c.Ask.Who.Only()
	case msg.ReasonChoiceUnknown:
		return textAskUnclear
	}
	return ""
}

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
