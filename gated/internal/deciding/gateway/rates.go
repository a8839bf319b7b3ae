package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"arizuko/gated/internal/authority"
	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// rates counts the turns of senders in groups within the last hour. A group's are read
// from the rows when the first is asked for, and kept up to date from then on: a
// message costs no query. It is as large as the turns of an hour are many.
//
// If several gateways divide the chats, the turns that others have stored are read once a second: as many as they store
// for a sender within that time are not counted.
type rates struct {
	st     *store.Store
	groups map[string]map[string][]countedTurn // by folder and sender, oldest first
	shared bool                                // several gateways divide the chats
	readAt map[string]time.Time                // when the turns of a group were read, if shared
	coming map[payer]int                       // turns of this pass that are not stored yet
	stale  sync.Map                            // folders, of Recount
	// when a chat got the notice that a sender has no turn left, 0 for not lately
	notices map[speaker]int64
}

// countedTurn is a turn, and when its sender's last row in it was decided.
type countedTurn struct{ turn, at int64 }

// payer is a sender who pays in a group.
type payer struct{ folder, sender string }

// speaker is a sender in a chat.
type speaker struct{ chat, sender string }

func newRates(st *store.Store, shared bool) *rates {
	return &rates{st: st, shared: shared, groups: map[string]map[string][]countedTurn{}, coming: map[payer]int{},
		readAt: map[string]time.Time{}, notices: map[speaker]int64{}}
}

// sharedTime is how long the turns of a group are not read again that other gateways may have stored.
const sharedTime = time.Second

// refresh reads the turns of the batches' groups again, where other gateways may have stored some.
func (r *rates) refresh(ctx context.Context, batches []*batch, now int64) {
	if !r.shared {
		return
	}
	began := time.Now()
	var old []string
	for _, b := range batches {
		for i := range b.Rows {
			folder := groupOf(&b.Rows[i])
			if r.groups[folder] != nil && began.Sub(r.readAt[folder]) > sharedTime {
				r.readAt[folder] = began
				old = append(old, folder)
			}
		}
	}
	read := make([]map[string][]countedTurn, len(old))
	r.st.AllAtOnce(len(old), func(i int) {
		read[i], _ = r.read(ctx, old[i], now) // else what is known counts for a while longer
	})
	for i, senders := range read {
		if senders != nil {
			r.groups[old[i]] = senders
		}
	}
}

// quota returns how many of rate turns a sender has left in a group.
func (r *rates) quota(ctx context.Context, folder, sender string, rate int, now int64) (q decide.Quota, err error) {
	r.forgetStale()
	senders := r.groups[folder]
	if senders == nil {
		if senders, err = r.read(ctx, folder, now); err != nil {
			return q, err
		}
		r.groups[folder], r.readAt[folder] = senders, time.Now()
	}
	turns := within(senders[sender], now)
	if len(turns) > 0 {
		senders[sender] = turns
	}
	n := len(turns) + r.coming[payer{folder, sender}]
	q.Left, q.NextAt = max(rate-n, 0), now+authority.RateTime
	if first := max(n-rate, 0); first < len(turns) {
		q.NextAt = turns[first].at + authority.RateTime
	}
	return q, nil
}

// read counts the turns of a group's senders from the rows.
func (r *rates) read(ctx context.Context, folder string, now int64) (map[string][]countedTurn, error) {
	list, err := rows.RecentTurns(ctx, r.st.Reader, folder, now-authority.RateTime)
	if err != nil {
		return nil, err
	}
	senders, seen := map[string][]countedTurn{}, map[rows.SenderTurn]bool{}
	for _, row := range slices.Backward(list) { // the last row of each turn counts
		turn := countedTurn{row.Turn, row.At}
		if row.At = 0; !seen[row] {
			seen[row] = true
			senders[row.Sender] = append(senders[row.Sender], turn)
		}
	}
	for _, turns := range senders {
		slices.Reverse(turns)
	}
	return senders, nil
}

// within returns the turns of the hour before now. Those of a clock that was ahead are
// not among them.
func within(turns []countedTurn, now int64) []countedTurn {
	first := slices.IndexFunc(turns, func(t countedTurn) bool { return t.at > now-authority.RateTime })
	if first < 0 {
		return nil
	}
	turns = turns[first:]
	if last := turns[len(turns)-1]; last.at > now {
		turns = slices.DeleteFunc(turns, func(t countedTurn) bool { return t.at > now })
	}
	return turns
}

// note counts a turn that is stored. One that was counted before is counted once: it was queued, and has taken in more
// rows.
func (r *rates) note(by payer, turn, now int64) {
	if senders := r.groups[by.folder]; senders != nil {
		turns := slices.DeleteFunc(senders[by.sender], func(t countedTurn) bool { return t.turn == turn })
		senders[by.sender] = append(turns, countedTurn{turn, now})
	}
}

// Recount makes a group's turns be counted from the rows again: others than the gateway have stored some. It may be
// called from any goroutine.
func (g *Gateway) Recount(folder string) { g.rates.stale.Store(folder, true) }

// reset forgets all counts.
func (r *rates) reset() {
	clear(r.groups)
	clear(r.readAt)
	clear(r.coming)
	clear(r.notices)
}

// forgetStale forgets the groups of Recount.
func (r *rates) forgetStale() {
	r.stale.Range(func(folder, _ any) bool {
		r.stale.Delete(folder)
		r.forget(folder.(string))
		return true
	})
}

// forget drops a group's counts; the next quota reads them from the rows.
func (r *rates) forget(folder string) {
	delete(r.groups, folder)
	delete(r.readAt, folder)
}

// notifiedWithin reports whether a chat got a notice within the hour that a sender has no turn left.
func (r *rates) notifiedWithin(ctx context.Context, chat, sender string, now int64) (bool, error) {
	by := speaker{chat, sender}
	at, known := r.notices[by]
	if !known {
		var err error
		if at, err = rows.LastRateLimit(ctx, r.st.Reader, chat, sender); err != nil {
			return false, err
		}
		r.notices[by] = at
	}
	return at > now-authority.RateTime, nil
}

// prune drops turns older than an hour. That a chat got a notice is kept for another one:
// the rows only say when the last message was dropped, which may be later.
func (r *rates) prune(now int64) {
	for _, senders := range r.groups {
		for sender, turns := range senders {
			if turns = within(turns, now); len(turns) == 0 {
				delete(senders, sender)
			} else {
				senders[sender] = slices.Clip(turns)
			}
		}
	}
	for by, at := range r.notices {
		if at <= now-2*authority.RateTime {
			delete(r.notices, by)
		}
	}
}

// payers calls do for each sender who pays for a turn that the plan stores, with the index of the turn among those.
func (p *plan) payers(do func(by payer, turn int)) {
	turn := 0
	for _, e := range p.effects {
		s, ok := e.(decide.StoreTurn)
		if !ok {
			continue
		}
		counted := map[string]bool{}
		for _, entry := range s.Entries {
			row := p.facts(entry.Row)
			if sender := row.Payer(); row.Counted() && !counted[sender] {
				counted[sender] = true
				do(payer{s.Turn.Folder, sender}, turn)
			}
		}
		turn++
	}
}

// expect counts the turns that a plan will store, so that the sender's rows in other chats of the pass find them
// counted.
func (r *rates) expect(p *plan) { p.payers(func(by payer, _ int) { r.coming[by]++ }) }

// settle counts the turns that the plans of a pass have stored, and the notices about limits. The groups of a plan that
// failed are read again: it may have been stored nevertheless.
func (r *rates) settle(plans []*plan) {
	clear(r.coming)
	for _, p := range plans {
		p.payers(func(by payer, turn int) {
			if p.err != nil {
				r.forget(by.folder)
			} else {
				r.note(by, p.turns[turn].turn.ID, p.batch.Now)
			}
		})
		for _, e := range p.effects {
			if d, ok := e.(decide.Decide); ok && p.err == nil && d.Reason == msg.ReasonRateLimit {
				if row := p.facts(d.Row); row.NotifiesLimit() {
					r.notices[speaker{row.ChatJID, row.Payer()}] = p.batch.Now
				}
			}
		}
	}
}
