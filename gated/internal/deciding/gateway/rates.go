package gateway

import (
	"context"
	"slices"
	"sync"

	"arizuko/gated/internal/authority"
	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// rates counts the turns of senders in groups within the last hour. A group's are read
// from the rows when the first is asked for, and kept up to date from then on: a
// message costs no query. It is as large as the turns of an hour are many.
type rates struct {
	st     *store.Store
	groups map[string]map[string][]countedTurn // by folder and sender, oldest first
	stale  sync.Map                            // folders, of Recount
	// when a chat got the notice that a sender has no turn left, 0 for not lately
	notices map[speaker]int64
}

// countedTurn is a turn, 0 if it is not stored yet, and when its sender's last row in it
// was decided.
type countedTurn struct{ turn, at int64 }

// speaker is a sender in a chat.
type speaker struct{ chat, sender string }

func newRates(st *store.Store) *rates {
	return &rates{st: st, groups: map[string]map[string][]countedTurn{}, notices: map[speaker]int64{}}
}

// quota returns how many of rate turns a sender has left in a group.
func (r *rates) quota(ctx context.Context, folder, sender string, rate int, now int64) (q decide.Quota, err error) {
	r.forgetStale()
	senders := r.groups[folder]
	if senders == nil {
		if senders, err = r.read(ctx, folder, now); err != nil {
			return q, err
		}
		r.groups[folder] = senders
	}
	turns := within(senders[sender], now)
	if len(turns) > 0 {
		senders[sender] = turns
	}
	q.Left, q.NextAt = max(rate-len(turns), 0), now+authority.RateTime
	if len(turns) > 0 {
		q.NextAt = turns[max(len(turns)-rate, 0)].at + authority.RateTime
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

// reserve counts a turn that is about to be stored.
func (r *rates) reserve(folder, sender string, now int64) {
	if senders := r.groups[folder]; senders != nil {
		senders[sender] = append(senders[sender], countedTurn{at: now})
	}
}

// confirm names a turn that was reserved. One that was counted before is counted once:
// it was queued, and has taken in more rows.
func (r *rates) confirm(folder, sender string, turn int64) {
	turns := r.groups[folder][sender]
	reserved := len(turns) - 1
	for reserved >= 0 && turns[reserved].turn != 0 {
		reserved--
	}
	if reserved < 0 { // the group was forgotten since
		return
	}
	at := turns[reserved].at
	turns = slices.DeleteFunc(slices.Delete(turns, reserved, reserved+1),
		func(t countedTurn) bool { return t.turn == turn })
	r.groups[folder][sender] = append(turns, countedTurn{turn, at})
}

// Recount makes a group's turns be counted from the rows again: others than the gateway have stored some. It may be
// called from any goroutine.
func (g *Gateway) Recount(folder string) { g.rates.stale.Store(folder, true) }

// reset forgets all counts.
func (r *rates) reset() {
	clear(r.groups)
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
func (r *rates) forget(folder string) { delete(r.groups, folder) }

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

func (r *rates) noteNotice(chat, sender string, now int64) { r.notices[speaker{chat, sender}] = now }

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

// charge is one turn for which a sender pays in a group.
type charge struct {
	turn           int // index among the plan's stored turns
	folder, sender string
}

// reserveAll counts the turns that a plan will store, so that the sender's rows in other
// chats of the pass find them counted.
func (r *rates) reserveAll(p *plan) {
	turn := 0
	for _, e := range p.effects {
		s, ok := e.(decide.StoreTurn)
		if !ok {
			continue
		}
		counted := map[string]bool{}
		for _, entry := range s.Entries {
			row := p.facts(entry.Row)
			if payer := row.Payer(); row.Counted() && !counted[payer] {
				counted[payer] = true
				r.reserve(s.Turn.Folder, payer, p.batch.Now)
				p.charges = append(p.charges, charge{turn, s.Turn.Folder, payer})
			}
		}
		turn++
	}
}

// settle names the turns that were counted, or drops the counts if they were not
// stored. A notice about a limit counts once it is stored.
func (r *rates) settle(p *plan) {
	for _, c := range p.charges {
		if p.err == nil {
			r.confirm(c.folder, c.sender, p.turns[c.turn].turn.ID)
		} else {
			r.forget(c.folder)
		}
	}
	if p.err != nil {
		return
	}
	for _, e := range p.effects {
		if d, ok := e.(decide.Decide); ok && d.Reason == msg.ReasonRateLimit {
			if row := p.facts(d.Row); row.NotifiesLimit() {
				r.noteNotice(row.ChatJID, row.Payer(), p.batch.Now)
			}
		}
	}
}
