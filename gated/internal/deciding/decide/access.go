package decide

import (
	"fmt"
	"slices"
	"time"

	"arizuko/gated/internal/authority"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// Quota has the facts about the turns of a row's sender in the group that gets the row.
type Quota struct {
	Left     int   // turns that are left within the hour
	NextAt   int64 // when there is one more, unix ms
	Notified bool  // the chat got a notice about the limit within the hour
}

// Limit of the commands that the gateway answers a sender in a chat: more than anyone needs, and fewer than a program
// sends.
const (
	maxCommands = 20
	// CommandTime is the time in which they are counted, in ms.
	CommandTime      = int64(time.Minute / time.Millisecond)
	textCommandLimit = "You have sent 20 commands within a minute, which is the limit. " +
		"Further ones are ignored until the minute is over."
)

// Commands are the latest commands and pins of a sender in a chat.
type Commands struct {
	Answered  []int64 // when they arrived, in unix ms
	DroppedAt int64   // when the last one arrived that was dropped, since there were too many
}

// overCommands drops a command or pin of a sender who has sent too many within the minute, and notifies the chat once
// an hour. Operators have no limit.
func (w *step) overCommands(r *Row) bool {
	if r.Commands == nil {
		return false
	}
	sent := w.commandsOf(r)
	within := 0
	for _, at := range sent.Answered {
		if at > r.ReceivedAt-CommandTime && at <= r.ReceivedAt {
			within++
		}
	}
	if within < maxCommands {
		sent.Answered = append(sent.Answered, r.ReceivedAt)
		return false
	}
	w.decide(r, msg.Dropped, msg.ReasonCommandLimit, "")
	if sent.DroppedAt <= r.ReceivedAt-authority.RateTime {
		w.reply(r, msg.SourceNotice, textCommandLimit)
	}
	sent.DroppedAt = r.ReceivedAt
	return true
}

// commandsOf are those of a row's sender, with the ones of this step.
func (w *step) commandsOf(r *Row) *Commands {
	sent := w.commandsSent[r.Sender]
	if sent == nil {
		sent = &Commands{Answered: slices.Clone(r.Commands.Answered), DroppedAt: r.Commands.DroppedAt}
		w.commandsSent[r.Sender] = sent
	}
	return sent
}

const textNoPins = "Only operators may pin this chat."

// origin is for whom the row is.
func (r *Row) origin() authority.Origin {
	if r.OnBehalfOf == "" {
		return authority.Origin{Sender: r.Sender, Operator: r.Operator}
	}
	return authority.Origin{Sender: r.OnBehalfOf, Operator: r.ForOperator}
}

// admitted reports whether groups admit the row's origin.
func (r *Row) admitted(groups ...*groupconfig.Members) bool {
	return r.origin().May(authority.Use, groups...) == ""
}

// access drops a row for a group that does not admit its sender, or that names such a
// group from a chat of one. It comes before the gate, so that such rows neither hold
// nor release others, and before rows are observed, so that no prompt shows them. The
// chat gets no notice: anyone could make the bot write with it. A dropped row claims no
// engagement, but routd counted it for the rows after it: these are asked about again.
func (w *step) access(r *Row) bool {
	if r.Answers() { // to a group that has asked
		return false
	}
	if !r.admitted(r.Group) || r.Prefix != nil && !r.admitted(r.Home) {
		w.refuse(r)
		w.claimed = w.claimed || r.Answer.Action == routeapi.Trigger && r.called()
		return true
	}
	w.ended = w.claimed && r.Answer.Engaged
	return w.ended
}

// refuse drops a row for the first of its groups that does not admit its origin.
func (w *step) refuse(r *Row) {
	folder := r.Answer.Home
	switch {
	case !r.admitted(r.Group) && r.Kind == KindChange:
		folder = r.Change.Subject.RoutedTo
	case !r.admitted(r.Group):
		folder = r.Answer.Folder
	case r.Pin != nil && r.admitted(r.Home):
		folder = r.Pin.Folder
	}
	w.drop(r, msg.ReasonNoAccess, fmt.Sprintf("the role ask of group %s does not list %s", folder,
		r.origin().Sender))
}

// operates reports whether the row's sender operates the chat's group.
func (r *Row) operates() bool {
	return r.Operator || r.Home != nil && r.Home.Operates(r.Sender)
}

// pins reports whether the row's origin may pin the chat as the row asks for.
func (r *Row) pins() bool {
	return r.Pin != nil && r.origin().May(authority.Pin, r.Home, r.Pin.Members) == ""
}

// refusePin ends a row that asks for a pin which its sender may not set.
func (w *step) refusePin(r *Row) {
	if !r.admitted(r.Home, r.Pin.Members) {
		w.refuse(r)
		return
	}
	w.decide(r, msg.Dropped, msg.ReasonPinDenied, "")
	w.reply(r, msg.SourceCommand, textNoPins)
}

// Answers reports whether the row is the answer of a group that another one has asked. Its request was paid for.
func (r *Row) Answers() bool { return r.BetweenGroups() && r.ForwardedFrom.Kind == msg.Answer }

// Counted reports whether the row's turns count against the rate of its group.
func (r *Row) Counted() bool {
	return r.origin().Pays(r.Group)
}

// spender is a sender who pays in a group.
type spender struct{ folder, sender string }

// overRate drops the row of an entry whose sender has no turn left, and notifies the
// chat once an hour. A row that joins a turn with another row of its sender costs
// nothing.
func (w *step) overRate(e *entry) bool {
	r := e.row
	if !r.Counted() || r.Answers() || w.turns.has(e) {
		return false
	}
	by := spender{e.turn.Folder, r.Payer()}
	if w.spent[by] < r.Quota.Left {
		w.spent[by]++
		return false
	}
	w.drop(r, msg.ReasonRateLimit, fmt.Sprintf("the config of group %s has rate %d, for %s; "+
		"the next turn is free at %s",
		e.turn.Folder, r.Group.Rate, r.Payer(), time.UnixMilli(r.Quota.NextAt).UTC().Format("15:04:05 UTC")))
	if e.bind {
		delete(w.bound, e.turn.ThreadID) // the thread is not opened
	}
	if r.NotifiesLimit() && !w.notified[r.Payer()] {
		w.notified[r.Payer()] = true
		w.reply(r, msg.SourceNotice, RateNotice(r.Group.Rate, r.Quota.NextAt-w.f.Now))
	}
	return true
}

// NotifiesLimit reports whether the chat gets a notice if the row is dropped for the rate: not
// about reactions, and not another bot, which might answer.
func (r *Row) NotifiesLimit() bool {
	return (r.Kind == KindText || r.Kind == KindCommand) && !r.IsBot && !r.Quota.Notified
}

// RateNotice is the notice for a chat in which a sender has no turn left for wait, in ms.
func RateNotice(rate int, wait int64) string {
	answers, minutes := "answers", "minutes"
	if rate == 1 {
		answers = "answer"
	}
	n := max((wait+59_999)/60_000, 1)
	if n == 1 {
		minutes = "minute"
	}
	return fmt.Sprintf("You have reached this group's limit of %d %s an hour. Please write again in %d %s.",
		rate, answers, n, minutes)
}
