// Package why reads everything stored about one message, as steps, and prints it: where it came from, the
// decision and its reason, the turn and the runs that answered it, and how each part
// of the answer was delivered.
package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxRuns is how many runs of a turn are shown, the newest ones: a turn has as
// many as it had attempts, and one more where gated was killed.
const maxRuns = 10

// maxSent is how many requests of a turn are shown, the newest ones.
const maxSent = 100

// Path is everything stored about one message.
type Path struct {
	Asked *msg.Message // the row asked about
	// Rows are the inbound rows: the message, and those derived or delegated from it, by id.
	Rows  []*msg.Message
	Turns []*Turn
	// Replies are rows that gated wrote itself, outside a turn.
	Replies []*Reply
	// Request is the pending request of the chat, nil for none. Rows wait for it.
	Request *factrows.Request
	// Choice is the answer of a row to a question, nil if it is none.
	Choice *Choice
	// Daemons are those that have run: open rows may wait for one.
	Daemons facts.Daemons
	// Origins are those of rows, by their ids: a reminder, a broadcast, the end of a poll or a tool.
	Origins map[int64]*Origin
}

// Turn is a turn with its runs and its answers.
type Turn struct {
	*msg.Turn
	Batch   []*msg.Message        // all its rows
	Runs    []*factrows.RunResult // those of its folder and topic while it was open, oldest first
	Replies []*Reply
	Calls   []factrows.ToolCall // those that have acted, oldest first
	Asks    []*Asked            // oldest first
	Usage   agentproto.Usage    // zero if its agent did not say
	Sent    []*egress.Receipt   // the newest requests of its agent, oldest first
	Undos   []*factrows.Undo    // oldest first
}

// Reply is an outbound row with the parts it was cut into.
type Reply struct {
	*msg.Message
	Parts []store.Delivery
}

// ErrNoMessage means that there is no such row.
var ErrNoMessage = errors.New("no message")

// Read reads the path of row id. The error is an ErrNoMessage if there is no such row.
func Read(ctx context.Context, st store.Reader, id int64) (*Path, error) {
	l := &loader{st: st, path: &Path{}}
	asked := l.message(ctx, id)
	if l.err == nil && asked == nil {
		return nil, fmt.Errorf("%w %d", ErrNoMessage, id)
	}
	if l.err != nil {
		return nil, l.err
	}
	l.path.Asked = asked
	if asked.Direction == msg.Out {
		l.backwards(ctx, asked)
	} else {
		l.forwards(ctx, asked)
	}
	l.origins(ctx)
	if l.err == nil {
		l.path.Daemons, l.err = facts.ReadDaemons(ctx, st)
	}
	slices.SortFunc(l.path.Rows, func(a, b *msg.Message) int { return cmp.Compare(a.ID, b.ID) })
	return l.path, l.err
}

// loader collects a path. After an error its methods do nothing.
type loader struct {
	st   store.Reader
	path *Path
	err  error
}

func (l *loader) message(ctx context.Context, id int64) (m *msg.Message) {
	if l.err == nil {
		m, l.err = l.st.Message(ctx, id)
	}
	return m
}

// forwards follows an inbound row: from the row it was derived from, if any, to
// the turns and replies that came of it.
func (l *loader) forwards(ctx context.Context, m *msg.Message) {
	if m.DerivedFrom != 0 {
		if original := l.message(ctx, m.DerivedFrom); original != nil {
			m = original
		}
	}
	l.row(m)
	if l.err != nil {
		return
	}
	var derived []*msg.Message
	derived, l.err = l.st.DerivedFrom(ctx, m.ID)
	for _, d := range derived {
		l.row(d)
	}
	for _, r := range l.path.Rows {
		if r.TurnID != 0 {
			l.turn(ctx, r.TurnID)
		}
	}
	l.replies(ctx, m)
	l.choice(ctx, m)
	if l.err == nil && (m.Disposition == "" || m.Disposition == msg.Onboarding) {
		l.path.Request, l.err = factrows.PendingRequest(ctx, l.st, m.ChatJID)
	}
}

// backwards follows an outbound row to the message that it answers.
func (l *loader) backwards(ctx context.Context, out *msg.Message) {
	if out.TurnID != 0 {
		l.turn(ctx, out.TurnID)
		for _, t := range slices.Clone(l.path.Turns) {
			if trigger := l.message(ctx, t.TriggerMessageID); trigger != nil {
				l.forwards(ctx, trigger)
			}
		}
		return
	}
	if out.ReplyToID != "" && l.err == nil {
		var asked *msg.Message
		if asked, l.err = l.st.MessageByPlatformID(ctx, out.ChatJID, out.ReplyToID); asked != nil &&
			asked.Direction == msg.In {
			l.forwards(ctx, asked)
		}
	}
	if !slices.ContainsFunc(l.path.Replies, func(r *Reply) bool { return r.ID == out.ID }) {
		l.path.Replies = append(l.path.Replies, l.reply(ctx, out))
	}
}

func (l *loader) row(m *msg.Message) {
	if l.err == nil && !slices.ContainsFunc(l.path.Rows, func(r *msg.Message) bool { return r.ID == m.ID }) {
		l.path.Rows = append(l.path.Rows, m)
	}
}

func (l *loader) turn(ctx context.Context, id int64) {
	if l.err != nil || slices.ContainsFunc(l.path.Turns, func(t *Turn) bool { return t.ID == id }) {
		return
	}
	var row *msg.Turn
	if row, l.err = l.st.Turn(ctx, id); row == nil {
		return
	}
	var t *Turn
	if t, l.err = ReadTurn(ctx, l.st, row, math.MaxInt); l.err != nil {
		return
	}
	l.path.Turns = append(l.path.Turns, t)
	l.delegated(ctx, row)
	if row.AnsweredWith != 0 {
		l.turn(ctx, row.AnsweredWith)
	}
}

// ReadTurn reads what is stored about one turn, with some of its answers, the first ones.
func ReadTurn(ctx context.Context, st store.Reader, row *msg.Turn, answers int) (t *Turn, err error) {
	t = &Turn{Turn: row}
	if t.Usage, err = factrows.Usage(ctx, st, row.ID); err != nil {
		return nil, err
	}
	if t.Batch, err = factrows.TurnMessages(ctx, st, row.ID); err != nil {
		return nil, err
	}
	if t.Runs, err = factrows.RunsDuring(ctx, st, row.Folder, row.Topic, row.CreatedAt,
		cmp.Or(row.EndedAt, math.MaxInt64), maxRuns); err != nil {
		return nil, err
	}
	if t.Calls, err = factrows.ToolCalls(ctx, st, row.ID); err != nil {
		return nil, err
	}
	if t.Sent, err = egressrows.ReceiptsOfTurn(ctx, st, row.ID, maxSent); err != nil {
		return nil, err
	}
	if t.Undos, err = factrows.Undos(ctx, st, row); err != nil {
		return nil, err
	}
	replies, err := factrows.TurnReplies(ctx, st, row.ID)
	l := &loader{st: st, err: err}
	for _, m := range replies[:min(len(replies), answers)] {
		t.Replies = append(t.Replies, l.reply(ctx, m))
	}
	l.asks(ctx, t)
	return t, l.err
}

// delegated follows a turn to the turns that it delegated to other groups.
func (l *loader) delegated(ctx context.Context, t *msg.Turn) {
	if l.err != nil {
		return
	}
	var below []*msg.Turn
	below, l.err = factrows.Delegated(ctx, l.st, cmp.Or(t.RootTurnID, t.ID))
	for _, d := range below {
		asked := l.message(ctx, d.TriggerMessageID)
		if asked != nil && asked.ForwardedFrom != nil && asked.ForwardedFrom.TurnID == t.ID {
			l.row(asked)
			l.turn(ctx, d.ID)
		}
	}
}

func (l *loader) reply(ctx context.Context, m *msg.Message) *Reply {
	r := &Reply{Message: m}
	if l.err == nil {
		r.Parts, l.err = l.st.Deliveries(ctx, m.ID)
	}
	return r
}

// replies finds the rows that gated itself wrote about a row, such as a command's answer.
func (l *loader) replies(ctx context.Context, m *msg.Message) {
	if l.err != nil || m.PlatformID == "" {
		return
	}
	var answers []*msg.Message
	answers, l.err = factrows.OwnReplies(ctx, l.st, m)
	for _, a := range answers {
		l.path.Replies = append(l.path.Replies, l.reply(ctx, a))
	}
}
