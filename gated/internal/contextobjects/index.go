package contextobjects

import (
	"slices"
	"sync"

	"arizuko/pkg/msg"
)

// maxPerChat bounds the objects of a chat. Beyond it those that were touched longest ago end, open
// polls last: a lookup takes 2 µs at most, whatever an agent does.
const maxPerChat = 100

// Settings of an index.
type Settings struct {
	TTLs    TTLs
	Weights Weights
	Shared  bool // other processes activate objects, too: Follow reads those of the chat again
}

// Index has the active objects of all chats. It finds a chat's by the chat's address; within a chat,
// which has maxPerChat at most, it reads the keys of the topic, and those of the reply chain: that takes less than an
// index by kind, message and user would. A lookup costs as much for the memory that the processor has not read lately
// as for the work, so what it reads stands together. Its methods are safe for concurrent use.
type Index struct {
	set   Settings
	mu    sync.RWMutex
	chats map[string]chat // by address; none is empty
	// moves are from each former address of a chat to its next, as they were stored at movesAt, unix ms.
	moves   map[string]string
	movesAt int64
}

// New makes an empty index.
func New(set Settings) *Index { return &Index{set: set, chats: map[string]chat{}} }

// Lookup finds active objects, best first. It appends them to out and touches nothing; with room in
// out for Query.Max it allocates nothing.
func (x *Index) Lookup(q *Query, out []Match) Result {
	var room struct {
		chain [roomForPositions]uint64
		ranks [roomForRanks]rank
	}
	c := x.chat(q.ChatJID)
	r := ranking{Query: q, chat: c, weights: &x.set.Weights}
	r.prepare()
	chain := r.chain(room.chain[:])
	return r.result(chain, r.ranks(chain, room.ranks[:0]), c.objects, out)
}

func (x *Index) chat(jid string) chat {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.chats[jid]
}

// Len is the number of objects in memory.
func (x *Index) Len() (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, c := range x.chats {
		n += len(c.objects)
	}
	return n
}

// put stores an object of a chat, and removes others by id and those that ended before now.
func (x *Index) put(o Object, removed []string, now int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	objects := []Object{o}
	for _, old := range x.chats[o.ChatJID].objects {
		if old.ID != o.ID && old.ActiveUntil > now && !slices.Contains(removed, old.ID) {
			objects = append(objects, old)
		}
	}
	x.replace(o.ChatJID, objects)
}

// remove removes an object.
func (x *Index) remove(jid, id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replace(jid, slices.DeleteFunc(slices.Clone(x.chats[jid].objects), func(o Object) bool { return o.ID == id }))
}

// prune removes what ended before now.
func (x *Index) prune(now int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for jid, c := range x.chats {
		if slices.ContainsFunc(c.keys, func(k key) bool { return k.end <= now && k.reasons&msg.OpenPoll == 0 }) {
			x.replace(jid, slices.DeleteFunc(slices.Clone(c.objects),
				func(o Object) bool { return o.ActiveUntil <= now }))
		}
	}
}

// address is the present address of a chat. known is false if a move may have been missed.
func (x *Index) address(jid string, now int64) (present string, known bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	present = lastAddress(x.moves, jid)
	_, known = x.chats[present]
	age := now - x.movesAt
	return present, known && age >= 0 && age < followDelay.Milliseconds()
}

func lastAddress(moves map[string]string, jid string) string {
	for range maxAddress {
		next, moved := moves[jid]
		if !moved {
			break
		}
		jid = next
	}
	return jid
}

// follow gives the objects of chats that were moved their present address.
func (x *Index) follow(moves map[string]string, now int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.moves, x.movesAt = moves, now
	for from := range moves {
		x.move(from, lastAddress(moves, from), now)
	}
}

// move gives a chat's objects another address; an object that is active there already stays. The caller
// has locked.
func (x *Index) move(from, to string, now int64) {
	moved, known := x.chats[from]
	if !known || from == to {
		return
	}
	delete(x.chats, from)
	var objects []Object
	there := map[string]bool{}
	for _, o := range x.chats[to].objects {
		if o.ActiveUntil > now {
			objects, there[o.ID] = append(objects, o), true
		}
	}
	for _, o := range moved.objects {
		if !there[o.ID] {
			o.ChatJID = to
			objects = append(objects, o)
		}
	}
	x.replace(to, objects)
}

// replace stores all objects of a chat; the caller has locked.
func (x *Index) replace(jid string, objects []Object) {
	if len(objects) == 0 {
		delete(x.chats, jid)
		return
	}
	x.chats[jid] = newChat(objects, &x.set)
}
