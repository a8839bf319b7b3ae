package gateway

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"arizuko/gated/internal/deciding/decide"
)

// waits owns the chats with undecided rows. A chat is listed by each thing that it waits for: a pass, routd, a change
// of the routes, or a time. All of it can be read from the rows again.
type waits struct {
	chats  map[string]*chat
	next   []*chat        // for a pass, in order
	later  []*chat        // for a pass that has no other
	routd  map[*chat]bool // for routd, or for the end of the lookup that is out
	routes map[*chat]bool // for a change of the routes
	due    []*chat        // for a time, the earliest first
	has    []bool         // the shards of chats that this gateway decides, nil for all chats
	meter  *meter
}

// decides reports whether this gateway decides a chat.
func (w *waits) decides(jid string) bool {
	if w.has == nil {
		return true
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(jid))
	return w.has[hash.Sum32()%uint32(len(w.has))]
}

// divide leaves chats to other gateways, but those of the shards that this one has from now on. Answers about them that
// are on the way no longer count.
func (w *waits) divide(has []bool) {
	w.has = has
	for jid, c := range w.chats {
		if !w.decides(jid) {
			w.restart(c)
			w.leave(c)
		}
	}
}

// leave forgets a chat.
func (w *waits) leave(c *chat) {
	delete(w.chats, c.jid)
	delete(w.routd, c)
	delete(w.routes, c)
}

// chat is kept between passes about a chat with undecided rows.
type chat struct {
	jid      string
	state    decide.State
	queued   bool           // in next or later
	asked    *batch         // its rows are part of the lookup that is out
	limited  bool           // a row waits for routd: only commands after it are decided
	scanned  int64          // while limited: rows up to this one were searched for commands
	timeouts int            // how often in a row routd timed out on its first row alone: it is asked about that alone
	skipped  map[int64]bool // rows left out: a service decides them, or they cannot be stored
	failed   int64          // the row whose decision could not be stored last
	failures int            // how often in a row
	dueAt    int64          // its time in the list of due chats, unix ms, 0 if it is not there
}

// skip leaves a row out of further passes.
func (c *chat) skip(id int64) {
	if c.skipped == nil {
		c.skipped = map[int64]bool{}
	}
	c.skipped[id] = true
}

// unlimit ends the time in which only commands of the chat are decided.
func (c *chat) unlimit() { c.limited, c.scanned = false, 0 }

func newWaits(m *meter, has []bool) *waits {
	return &waits{chats: map[string]*chat{}, routd: map[*chat]bool{}, routes: map[*chat]bool{}, has: has, meter: m}
}

// reset forgets everything but which rows other services decide.
func (w *waits) reset() {
	left := w.chats
	*w = *newWaits(w.meter, w.has)
	w.meter.held.Set(0)
	for jid, c := range left {
		if len(c.skipped) > 0 {
			kept := w.chat(jid)
			kept.skipped = c.skipped
			w.addLater(kept)
		}
	}
}

// chat returns the chat of an address.
func (w *waits) chat(jid string) *chat {
	c := w.chats[jid]
	if c == nil {
		c = &chat{jid: jid}
		w.chats[jid] = c
	}
	return c
}

// add puts a chat on the list for the next pass.
func (w *waits) add(c *chat) {
	if !c.queued {
		c.queued = true
		w.next = append(w.next, c)
	}
}

// addLater puts a chat on the list for when no other has rows to decide.
func (w *waits) addLater(c *chat) {
	if !c.queued {
		c.queued = true
		w.later = append(w.later, c)
	}
}

// putBack makes a chat the first of the list again.
func (w *waits) putBack(c *chat) {
	c.queued = true
	w.next = append([]*chat{c}, w.next...)
}

// addAt puts a chat on the list at a time, in unix ms.
func (w *waits) addAt(c *chat, due int64) {
	c.state.Due = due
	w.listDue(c)
}

// listDue lists a chat by its due time, and no longer by an earlier one.
func (w *waits) listDue(c *chat) {
	if at, found := slices.BinarySearchFunc(w.due, c, byDue); found {
		w.due = slices.Delete(w.due, at, at+1)
	}
	if c.dueAt = c.state.Due; c.dueAt != 0 {
		at, _ := slices.BinarySearchFunc(w.due, c, byDue)
		w.due = slices.Insert(w.due, at, c)
	}
}

func byDue(a, b *chat) int { return cmp.Or(cmp.Compare(a.dueAt, b.dueAt), cmp.Compare(a.jid, b.jid)) }

// listed reports whether a pass would have a chat.
func (w *waits) listed() bool { return len(w.next)+len(w.later) > 0 }

// pop removes the next chat from the list, nil for none. One that routd has to be asked about alone is removed only if
// it is the first of its pass. Chats that other gateways decide are left out.
func (w *waits) pop(others bool) *chat {
	for w.listed() {
		list := &w.next
		if len(*list) == 0 {
			list = &w.later
		}
		c := (*list)[0]
		decides := w.chats[c.jid] == c && w.decides(c.jid)
		if decides && others && c.timeouts > 0 && !c.limited {
			return nil
		}
		(*list)[0] = nil
		*list = (*list)[1:]
		c.queued = false
		if decides {
			return c
		}
		if w.chats[c.jid] == c {
			w.leave(c)
		}
	}
	return nil
}

// addDue puts the chats on the list whose time has come.
func (w *waits) addDue(now int64) {
	for len(w.due) > 0 && w.due[0].dueAt <= now {
		c := w.due[0]
		w.due, c.dueAt = w.due[1:], 0
		c.unlimit()
		w.add(c)
	}
}

// untilDue returns the time until the next chat is due, an hour if none waits for a time.
func (w *waits) untilDue(now int64) time.Duration {
	if len(w.due) == 0 {
		return time.Hour
	}
	return max(time.Duration(w.due[0].dueAt-now)*time.Millisecond, time.Millisecond)
}

// restart forgets a chat's rows, so that all are read again.
func (w *waits) restart(c *chat) {
	if c.asked != nil {
		c.asked.stale = true
		c.asked = nil
	}
	w.meter.forgotten(&c.state)
	c.state = decide.State{}
	c.unlimit()
	w.listDue(c)
}

// restartSettled restarts the chats about which nothing is under way.
func (w *waits) restartSettled() {
	for _, c := range w.chats {
		if !c.queued && c.asked == nil && !w.routd[c] && c.failures == 0 && c.timeouts == 0 {
			w.restart(c)
			w.addLater(c)
		}
	}
}

// endRoutd takes up the chats that waited for routd, or for the end of a lookup.
func (w *waits) endRoutd() {
	for c := range w.routd {
		c.unlimit()
		w.add(c)
	}
	clear(w.routd)
}

// endRoutes takes up the chats that waited for a change of the routes.
func (w *waits) endRoutes() {
	for c := range w.routes {
		w.restart(c)
		w.addLater(c)
	}
	clear(w.routes)
}

// endDue takes up all chats that waited for a time.
func (w *waits) endDue() {
	due := slices.Clone(w.due)
	for _, c := range slices.Backward(due) { // from the end, which is cheap to remove from
		w.restart(c)
	}
	for _, c := range due {
		w.add(c)
	}
}

// keep keeps a chat's state for its next pass, or forgets a chat that waits for nothing.
func (w *waits) keep(b *batch, next decide.State, now time.Time) {
	c := b.chat
	w.meter.changed(&c.state, &next, now)
	again := next.Again
	c.state = next
	c.state.Again = false
	w.listDue(c)
	if c.state.Awaits&decide.AwaitsRoute != 0 {
		w.routes[c] = true
	} else {
		delete(w.routes, c)
	}
	if again {
		w.add(c)
	}
	if c.state.Awaits&decide.AwaitsRoutd != 0 && !again { // until it is due, only commands are looked for
		c.limited, c.scanned = true, b.Last
		if b.More {
			w.add(c)
		}
	}
	if !c.queued && c.state.Idle() && len(c.skipped) == 0 && c.asked == nil && !w.routd[c] && !w.routes[c] {
		delete(w.chats, c.jid)
	}
}

// keepLimited keeps the state of a chat where only commands were decided.
func (w *waits) keepLimited(b *batch, next decide.State, effects []decide.Effect) {
	c := b.chat
	switch {
	case next.Again: // its rows have changed: answers about them that are on the way no longer count
		w.restart(c)
		w.routd[c] = true
		w.add(c)
	case c.asked == b:
		b.forget(effects)
	default:
		c.scanned = max(c.scanned, b.Last)
		if b.More {
			w.add(c)
		}
	}
}
