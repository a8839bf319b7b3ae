package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/redecided"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// Resolve answers where rows go that were decided before, as routd does.
type Resolve func(context.Context, routeapi.Replay) ([]routeapi.Answer, error)

// Redecide decides messages again that were decided since a time, in unix ms, at most limit, the newest, and compares
// that with the stored decisions. It changes nothing. Things that rows do not tell are not compared, or taken as they
// were: engagement, limits, and the messages that edits, votes and answers are about.
func Redecide(ctx context.Context, cfg Config, st store.Reader, resolve Resolve, since int64,
	limit int) (redecided.Check, error) {
	r := redecider{check: redecided.Check{What: "messages"}, resolve: resolve, engaged: map[string]bool{},
		pinned: map[string]int64{}}
	cfg.Now = func() time.Time { return time.UnixMilli(r.at) }
	list, err := rows.DecidedInbound(ctx, st, since, limit)
	if err != nil {
		return r.check, err
	}
	if r.changedAt, err = rows.TableChangedAt(ctx, st); err != nil {
		return r.check, err
	}
	readOnly := &store.Store{Reader: st} // of which the rules read
	r.reader = &reader{cfg: &cfg, st: readOnly, members: newMembers(readOnly, slog.New(slog.DiscardHandler)),
		rates: newRates(readOnly, false)}
	if r.reader.facts.Operators, err = st.Operators(ctx, cfg.Operators); err != nil {
		return r.check, err
	}
	for _, m := range list {
		r.engaged[m.ChatJID] = r.engaged[m.ChatJID] || m.Reason == msg.ReasonEngaged
		if m.Disposition == msg.Sticky {
			r.pinned[m.ChatJID] = max(r.pinned[m.ChatJID], m.ID)
		}
	}
	for _, batch := range commits(list, len(list) == limit) {
		if err := r.batch(ctx, batch); err != nil {
			return r.check, err
		}
	}
	return r.check, nil
}

// commits are the rows of each chat that were decided at one time, in their order. The oldest rows may lack others of
// their commit if there are more than were read.
func commits(rows []*msg.Message, more bool) (all [][]*msg.Message) {
	type commit struct {
		chat string
		at   int64
	}
	index := map[commit]int{}
	for _, m := range slices.Backward(rows) {
		key := commit{m.ChatJID, m.DecidedAt}
		at, found := index[key]
		if !found {
			at = len(all)
			index[key], all = at, append(all, nil)
		}
		all[at] = append(all[at], m)
	}
	if more && len(all) > 0 {
		return all[1:]
	}
	return all
}

// redecider is one call of Redecide.
type redecider struct {
	reader    *reader
	resolve   Resolve
	check     redecided.Check
	at        int64            // when the rows were decided that are decided now
	changedAt int64            // when routes or groups were changed last
	engaged   map[string]bool  // chats in which a group was engaged
	pinned    map[string]int64 // the last message that pinned or released a chat; by ids, as clocks are set
}

// Why messages are not compared.
const (
	notByRules   = "decided by a limit, an approval, a /stop, or the answer of another program, which rows do not tell"
	notByItself  = "edits, votes, presses and messages of agents: what they are about is not as it was"
	notAlone     = "parts of an album or of a long text"
	notAnswered  = "refused by the routes as too long, or not understood"
	sinceChanged = "decided otherwise, but routes or groups were changed since"
	sincePinned  = "decided otherwise, but the chat was pinned or released since"
	maybeEngaged = "decided otherwise, but another group may have been engaged there, which rows do not tell"
)

// byRules are the reasons that follow from the rows, the routes and the groups.
var byRules = []msg.Reason{
	msg.ReasonStickyGroup, msg.ReasonStickyTopic, msg.ReasonStickyReset, msg.ReasonCommand, msg.ReasonPrefixGroup,
	msg.ReasonPrefixTopic,
	msg.ReasonRoute, msg.ReasonRouteObserve, msg.ReasonEngaged, msg.ReasonToSticky, msg.ReasonAddress,
	msg.ReasonBuiltinPing, msg.ReasonBuiltinDrop,
	msg.ReasonDaemon, msg.ReasonNoRoute, msg.ReasonNoGroup, msg.ReasonNoAccess, msg.ReasonPinDenied, msg.ReasonStale,
	msg.ReasonReactionOnly, msg.ReasonReactionOverflow,
}

// unjudged says why a row cannot be compared, "" if it can.
func unjudged(m *msg.Message) string {
	switch {
	case m.ForwardedFrom != nil, m.Verb == msg.VerbEdit, m.Verb == msg.VerbDelete, m.Verb == msg.VerbAnswer,
		m.Verb == msg.VerbVote,
		m.Verb == msg.VerbPollEnd, msg.FamilyOf(m.ChatJID) == msg.PlatformGroup:
		return notByItself
	case m.GroupKey != "":
		return notAlone
	case !slices.Contains(byRules, m.Reason):
		return notByRules
	}
	return ""
}

// batch decides rows again that were decided together. If one of them cannot be, the others may have been decided by
// it.
func (r *redecider) batch(ctx context.Context, rows []*msg.Message) error {
	// its original is compared
	rows = slices.DeleteFunc(rows, func(m *msg.Message) bool { return m.DerivedFrom != 0 })
	if at := slices.IndexFunc(rows, func(m *msg.Message) bool { return unjudged(m) != "" }); at >= 0 {
		for range rows {
			r.check.Leave(unjudged(rows[at]))
		}
		return nil
	}
	if len(rows) == 0 {
		return nil
	}
	r.at = rows[0].DecidedAt
	b, err := r.load(ctx, rows)
	if err == nil {
		err = r.answer(ctx, b, rows)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(b.Rows, func(row decide.Row) bool {
		return !row.Known || row.Answer.Error != "" ||
			row.Problem != ""
	}) {
		for range rows {
			r.check.Leave(notAnswered)
		}
		return nil
	}
	held, outcomes := r.step(b)
	for i, m := range rows {
		r.compare(m, b, &b.Rows[i], outcomes[m.ID], held[m.ID])
	}
	return nil
}

// load reads the facts about rows, as if they were not decided yet.
func (r *redecider) load(ctx context.Context, rows []*msg.Message) (*batch, error) {
	info, err := r.reader.st.Chat(ctx, rows[0].ChatJID)
	if err != nil {
		return nil, err
	}
	b := r.reader.newBatch(&chat{jid: rows[0].ChatJID}, info)
	b.Request.Read = true
	for _, m := range rows {
		undecided := *m
		undecided.Disposition, undecided.Reason, undecided.RoutedTo, undecided.DecidedAt, undecided.TurnID = "", "", "",
			0, 0
		row := r.reader.parse(&undecided) // which has the facts about those of byRules
		if row.Post = m.PlatformID; row.Verb == msg.VerbReaction {
			row.Post = row.TargetID
		}
		b.Rows = append(b.Rows, row)
		b.Last = m.ID
	}
	return b, nil
}

// answer asks where the rows go, a second time if some name their group, and reads the facts that depend on that.
func (r *redecider) answer(ctx context.Context, b *batch, rows []*msg.Message) error {
	for range 2 {
		q := routeapi.Replay{Engaged: map[int64]string{}}
		for i := range b.Rows {
			if it := b.Rows[i].Lookup(&b.Chat); it != nil {
				q.Items = append(q.Items, *it)
			}
			if rows[i].Reason == msg.ReasonEngaged {
				q.Engaged[rows[i].ID] = rows[i].RoutedTo
			}
		}
		answers, err := r.resolve(ctx, q)
		if err != nil {
			return err
		}
		for _, a := range answers {
			for i := range b.Rows {
				if b.Rows[i].ID == a.ID {
					b.Rows[i].Answer, b.Rows[i].Known = a, true
				}
			}
		}
		if !r.reader.findPrefixes(ctx, b) {
			break
		}
	}
	if b.err != nil {
		return b.err
	}
	if err := r.reader.complete(ctx, b); err != nil {
		return err
	}
	for i := range b.Rows { // limits are not compared
		b.Rows[i].Commands, b.Rows[i].Quota, b.Rows[i].BotTurns = nil, decide.Quota{Left: math.MaxInt}, 0
	}
	return nil
}

// step decides the rows whatever the gate does, and says of those that the gate would hold for longer until when.
func (r *redecider) step(b *batch) (held map[int64]int64, outcomes map[int64]decide.Decide) {
	held, outcomes = map[int64]int64{}, map[int64]decide.Decide{}
	facts := b.Facts
	_, effects := decide.Step(decide.State{}, &facts)
	// A command or a pin releases the rows before it, and a row of a clock that is ahead counts as if it came now.
	unknown := slices.ContainsFunc(b.Rows, func(row decide.Row) bool {
		return row.Command != nil || row.Pin != nil ||
			row.ReceivedAt > r.at
	})
	for _, e := range effects {
		if h, ok := e.(decide.Hold); ok && !unknown && h.Until > r.at {
			held[h.Row] = h.Until
		}
	}
	for range len(b.Rows) { // a row may end a step
		_, effects := decide.Step(decide.State{Release: decide.ReleaseAll}, &facts)
		for _, e := range effects {
			note(outcomes, e)
		}
		left := slices.DeleteFunc(slices.Clone(facts.Rows),
			func(row decide.Row) bool { _, done := outcomes[row.ID]; return done })
		if len(left) == 0 || len(left) == len(facts.Rows) {
			break
		}
		facts.Rows = left
	}
	return held, outcomes
}

// note keeps the outcome of a row.
func note(outcomes map[int64]decide.Decide, e decide.Effect) {
	switch e := e.(type) {
	case decide.Decide:
		outcomes[e.Row] = e
	case decide.StoreTurn:
		for _, entry := range e.Entries {
			if _, prefixed := outcomes[entry.Row]; !prefixed {
				outcomes[entry.Row] = decide.Decide{Disposition: msg.Routed, Reason: entry.Reason,
					RoutedTo: e.Turn.Folder}
			}
		}
	case decide.AskService:
		outcomes[e.Row] = decide.Decide{Disposition: msg.Command, Reason: msg.ReasonCommand}
		if e.RouteID != 0 {
			outcomes[e.Row] = decide.Decide{Reason: msg.ReasonDaemon}
		}
	case decide.OpenRequest:
		outcomes[e.Row] = decide.Decide{Disposition: msg.Onboarding, Reason: msg.ReasonAwaitingApproval}
	}
}

// settleTime is how long after a change of the routes a row may have been decided by those of before, in ms.
const settleTime = 10_000

// compare counts a row. A difference that something since may explain is none.
func (r *redecider) compare(m *msg.Message, b *batch, row *decide.Row, now decide.Decide, heldUntil int64) {
	named := m.Disposition == msg.Routed || m.Disposition == msg.Prefix || m.Reason == msg.ReasonRouteObserve
	same := now.Reason == m.Reason && (!named || now.RoutedTo == m.RoutedTo)
	// then /stop and /status look at who has used the chat
	maybe := r.engaged[m.ChatJID] || row.Command != nil && row.Answer.Home == ""
	byOthers := m.Reason != msg.ReasonEngaged && m.Disposition != msg.Routed && m.Reason != msg.ReasonRouteObserve
	switch {
	case same && heldUntil == 0:
		r.check.Same++
	case r.changedAt > 0 && r.changedAt+settleTime >= m.DecidedAt:
		r.check.Leave(sinceChanged)
	case r.pinned[m.ChatJID] >= m.ID, b.Chat.StickyAt >= m.ReceivedAt: // a pin releases the rows before it
		r.check.Leave(sincePinned)
	case !same && byOthers && maybe:
		r.check.Leave(maybeEngaged)
	case same:
		r.check.Differ(fmt.Sprintf("message %d in %.80s: decided %s after it came, now held for %s", m.ID, m.ChatJID,
			ms(m.DecidedAt-m.ReceivedAt), ms(heldUntil-m.ReceivedAt)))
	default:
		r.check.Differ(fmt.Sprintf("message %d in %.80s: was %s, now %s", m.ID, m.ChatJID,
			described(m.Disposition, m.Reason, m.RoutedTo), described(now.Disposition, now.Reason, now.RoutedTo)))
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// described words a decision.
func described(disposition msg.Disposition, reason msg.Reason, folder string) string {
	text := fmt.Sprintf("%s (%s)", disposition, reason)
	switch {
	case reason == "":
		return "undecided"
	case folder != "":
		text += " to " + folder
	}
	return text
}
