package contextobjects

import (
	"cmp"
	"slices"
	"strings"
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
}

// Index has the active objects of all chats. It finds a chat's by the chat's address; within a chat,
// which has maxPerChat at most, it reads their keys, in the order of last_touched_at, which hold
// topic, kind, message and user: that takes less than an index by each of them would. Its methods
// are safe for concurrent use.
type Index struct {
	set   Settings
	mu    sync.RWMutex
	chats map[string]*chat // by address; none is empty
	// moves are from each former address of a chat to its next, as they were stored at movesAt, unix ms.
	moves   map[string]string
	movesAt int64
}

// New makes an empty index.
func New(set Settings) *Index { return &Index{set: set, chats: map[string]*chat{}} }

// Lookup finds active objects, best first. It appends them to out and touches nothing; with room in
// out for Query.Max it allocates nothing.
func (x *Index) Lookup(q *Query, out []Match) Result {
	r := ranking{Query: q, chat: x.chat(q.ChatJID), weights: &x.set.Weights}
	return r.lookup(out)
}

func (x *Index) chat(jid string) *chat {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c := x.chats[jid]; c != nil {
		return c
	}
	return &chat{}
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
	if c := x.chats[o.ChatJID]; c != nil {
		objects = make([]Object, 0, len(c.objects)+1)
		for _, old := range c.objects {
			if old.ID != o.ID && old.ActiveUntil > now && !slices.Contains(removed, old.ID) {
				objects = append(objects, old)
			}
		}
		objects = append(objects, o)
	}
	x.replace(o.ChatJID, objects)
}

// remove removes an object.
func (x *Index) remove(jid, id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c := x.chats[jid]; c != nil {
		x.replace(jid, slices.DeleteFunc(slices.Clone(c.objects), func(o Object) bool { return o.ID == id }))
	}
}

// prune removes what ended before now.
func (x *Index) prune(now int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for jid, c := range x.chats {
		if slices.ContainsFunc(c.keys, func(k key) bool { return k.end <= now && k.reasons&msg.OpenPoll == 0 }) {
			x.replace(jid, slices.DeleteFunc(slices.Clone(c.objects), func(o Object) bool { return o.ActiveUntil <= now }))
		}
	}
}

// address is the present address of a chat. known is false if a move may have been missed.
func (x *Index) address(jid string, now int64) (present string, known bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	present = lastAddress(x.moves, jid)
	age := now - x.movesAt
	return present, x.chats[present] != nil && age >= 0 && age < followDelay.Milliseconds()
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
	moved := x.chats[from]
	if moved == nil || from == to {
		return
	}
	delete(x.chats, from)
	var objects []Object
	known := map[string]bool{}
	if c := x.chats[to]; c != nil {
		objects = slices.DeleteFunc(slices.Clone(c.objects), func(o Object) bool { return o.ActiveUntil <= now })
	}
	for _, o := range objects {
		known[o.ID] = true
	}
	for _, o := range moved.objects {
		if !known[o.ID] {
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
	x.chats[jid] = x.newChat(objects)
}

// newChat takes objects of one chat over.
func (x *Index) newChat(objects []Object) *chat {
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(b.LastTouchedAt, a.LastTouchedAt), strings.Compare(a.ID, b.ID))
	})
	c := &chat{keys: make([]key, len(objects)), objects: objects, users: []word{newWord("")}}
	for i := range objects {
		o := &objects[i]
		k := key{source: o.SourceMessageID, end: o.ActiveUntil, due: o.DueAt, kinds: 1 << kindBit(o.Kind), reasons: o.Reasons}
		if o.OpenPoll() {
			k.end, k.reasons = o.LastTouchedAt+x.set.TTLs.Max.Milliseconds(), k.reasons|msg.OpenPoll
		}
		k.score = x.set.Weights.ofObject(k.reasons)
		k.perLife = 1 / float64(max(k.end-o.LastTouchedAt, 1))
		c.topics, k.topic = position(c.topics, o.Topic)
		c.users, k.user = position(c.users, o.CreatedBy)
		c.named = c.named || o.Topic != ""
		c.keys[i] = k
	}
	return c
}

func newWord(text string) word {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return word{h, text}
}

// find returns where a text is in a list, -1 if it is not there.
func find(list []word, text string) int {
	w := newWord(text)
	for i := range list {
		if list[i].hash == w.hash && list[i].text == text {
			return i
		}
	}
	return -1
}

// position returns where a text is in a list, which it appends it to if it is not there.
func position(list []word, text string) ([]word, uint16) {
	i := find(list, text)
	if i < 0 {
		i, list = len(list), append(list, newWord(text))
	}
	return list, uint16(i)
}
