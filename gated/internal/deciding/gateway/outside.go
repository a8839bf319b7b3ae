package gateway

import (
	"context"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// lookEvery bounds how often other programs' changes are looked for after a poke.
const lookEvery = time.Second

// outside finds chats that other programs have changed: those that were moved, and those with parked rows whose request
// was decided.
type outside struct {
	st     *store.Store
	reads  *store.Outage
	waits  *waits
	moves  map[string]string // from → to, nil before the first look
	moving map[string]bool   // their rows are still being moved
	parked map[string]bool   // chats with parked rows; some may have none any more
	poked  bool              // since the last look, by a program that may have changed one
	lookAt time.Time         // not before
}

// look takes up chats that were moved since the last look, and those with parked rows: all, or those whose request is
// no longer pending.
func (o *outside) look(ctx context.Context, all bool) error {
	began := time.Now()
	o.lookAt = began.Add(lookEvery)
	moves, moving, err := chatmove.Moves(ctx, o.st.Reader)
	var chats []rows.ParkedChat
	if err == nil {
		chats, err = rows.ParkedChats(ctx, o.st.Reader)
	}
	if o.reads.Note(ctx, err) != nil {
		return err
	}
	for from, to := range moves {
		if o.moves != nil && (o.moves[from] != to || moving[from] || o.moving[from]) {
			o.restart(from, to)
		}
	}
	clear(o.parked)
	for _, c := range chats {
		o.parked[c.JID] = true
		if all {
			o.waits.addLater(o.waits.chat(c.JID))
		} else if !c.Pending {
			o.waits.add(o.waits.chat(c.JID))
		}
	}
	// With thousands of chats it takes its time: at most a twentieth of ours.
	o.lookAt = began.Add(max(lookEvery, 20*time.Since(began)))
	o.moves, o.moving, o.poked = moves, moving, false
	return nil
}

// restart reads the rows of chats again that were moved: they keep their ids, which the floor has passed.
func (o *outside) restart(jids ...string) {
	for _, jid := range jids {
		c := o.waits.chat(jid)
		o.waits.restart(c)
		o.waits.addLater(c)
	}
}

// check looks if a poke asks for it.
func (o *outside) check(ctx context.Context) {
	if o.until() == 0 {
		_ = o.look(ctx, false)
	}
}

// until returns the time until the next look, an hour if no poke asks for one.
func (o *outside) until() time.Duration {
	if !o.poked {
		return time.Hour
	}
	return max(time.Until(o.lookAt), 0)
}

// addParked takes up all chats with parked rows.
func (o *outside) addParked() {
	for jid := range o.parked {
		o.waits.addLater(o.waits.chat(jid))
	}
}

// follow follows the chats with parked rows to their new addresses. Their rows move with the chat, and must be decided
// before its newer ones.
func (o *outside) follow(ctx context.Context) error {
	if len(o.parked) == 0 {
		return nil
	}
	moves, _, err := chatmove.Moves(ctx, o.st.Reader)
	for from, to := range moves {
		if o.parked[from] {
			delete(o.parked, from)
			o.parked[to] = true
		}
	}
	return err
}

// note notes that effects park rows of a chat, before they are stored: a chat that has none costs a read.
func (o *outside) note(chat string, effects []decide.Effect) {
	for _, e := range effects {
		if d, ok := e.(decide.Decide); ok && d.Disposition == msg.Onboarding {
			o.parked[chat] = true
			return
		}
	}
}
