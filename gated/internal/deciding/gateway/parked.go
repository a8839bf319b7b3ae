package gateway

import (
	"context"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// parkedEvery bounds how often all chats with parked rows are looked for after a poke.
const parkedEvery = time.Second

// parked owns the chats with parked rows; some may have none any more.
type parked struct {
	st     *store.Store
	reads  *store.Outage
	waits  *waits
	chats  map[string]bool
	unread bool      // a poke has come that may have been about a request
	readAt time.Time // when they may be read again
}

// read finds the chats with parked rows. All of them are looked at, or those whose request is no longer pending.
func (p *parked) read(ctx context.Context, all bool) error {
	began := time.Now()
	p.readAt = began.Add(parkedEvery)
	chats, err := rows.ParkedChats(ctx, p.st.Reader)
	if p.reads.Note(ctx, err) != nil {
		return err
	}
	clear(p.chats)
	for _, c := range chats {
		p.chats[c.JID] = true
		if all {
			p.waits.addLater(p.waits.chat(c.JID))
		} else if !c.Pending {
			p.waits.add(p.waits.chat(c.JID))
		}
	}
	// With thousands of chats it takes its time: at most a twentieth of ours.
	p.readAt = began.Add(max(parkedEvery, 20*time.Since(began)))
	p.unread = false
	return nil
}

// check looks for chats whose request was approved or rejected, if a poke asks for it.
func (p *parked) check(ctx context.Context) {
	if p.until() == 0 {
		_ = p.read(ctx, false)
	}
}

// until returns the time until decided requests are looked for, an hour if no poke asks for it.
func (p *parked) until() time.Duration {
	if !p.unread || len(p.chats) == 0 {
		return time.Hour
	}
	return max(time.Until(p.readAt), 0)
}

// addAll takes up all chats with parked rows.
func (p *parked) addAll() {
	for jid := range p.chats {
		p.waits.addLater(p.waits.chat(jid))
	}
}

// follow follows the chats to their new addresses. Their rows move with the chat, and must be decided before its newer
// ones.
func (p *parked) follow(ctx context.Context) error {
	if len(p.chats) == 0 {
		return nil
	}
	moves, _, err := p.st.ChatMoves(ctx)
	for from, to := range moves {
		if p.chats[from] {
			delete(p.chats, from)
			p.chats[to] = true
		}
	}
	return err
}

// note notes that effects park rows of a chat, before they are stored: a chat that has none costs a read.
func (p *parked) note(chat string, effects []decide.Effect) {
	for _, e := range effects {
		if d, ok := e.(decide.Decide); ok && d.Disposition == msg.Onboarding {
			p.chats[chat] = true
			return
		}
	}
}
