package contextobjects

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// chat is the objects of one chat. It is never changed: a write replaces it. keys and objects have the same order:
// those of a topic stand together, in it the one touched last comes first, then the smallest id.
type chat struct {
	keys    []key
	objects []Object
	topics  []name
	users   []name // users[0] is "", the unknown user
}

// key is what ranking reads of an object: it is compact, so that a chat's keys are read from few cache lines.
type key struct {
	source  int64
	end     int64   // when the recency is 0: ActiveUntil, for an open poll Max after the last touch
	perLife float64 // 1 / (end - last touch)
	score   int32   // what depends on no query
	reasons Reasons // the object's, OpenPoll, and FutureReminder if it has a time at which it is due
	kinds   KindSet
	user    uint16 // position in chat.users
	age     uint16 // how many objects of the chat come before it by last touch, then by id: this breaks ties of scores
}

// name is a topic or a user, with a hash, so that most other ones differ without a read of their text.
type name struct {
	hash     uint64
	text     string
	from, to uint16 // of a topic: its keys are keys[from:to]
}

func newName(text string) name {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return name{hash: h, text: text}
}

// find returns the position of a text in a list, -1 if it is not there.
func find(list []name, text string) int {
	n := newName(text)
	for i := range list {
		if list[i].hash == n.hash && list[i].text == text {
			return i
		}
	}
	return -1
}

// newChat takes objects of one chat over.
func newChat(objects []Object, set *Settings) chat {
	byTouch := func(a, b *Object) int {
		return cmp.Or(cmp.Compare(b.LastTouchedAt, a.LastTouchedAt), strings.Compare(a.ID, b.ID))
	}
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic),
			byTouch(&a, &b))
	})
	c := chat{keys: make([]key, len(objects)), objects: objects}
	topics, users := []name{}, []name{newName("")}
	ages := make([]int, len(objects))
	for i := range objects {
		o := &objects[i]
		c.keys[i] = newKey(o, set)
		if i == 0 || o.Topic != objects[i-1].Topic {
			topics = append(topics, newName(o.Topic))
			topics[len(topics)-1].from = uint16(i)
		}
		topics[len(topics)-1].to = uint16(i + 1)
		user := find(users, o.CreatedBy)
		if user < 0 {
			user, users = len(users), append(users, newName(o.CreatedBy))
		}
		c.keys[i].user = uint16(user)
		ages[i] = i
	}
	names := packed(slices.Concat(topics, users))
	c.topics, c.users = names[:len(topics)], names[len(topics):]
	slices.SortFunc(ages, func(i, j int) int { return byTouch(&objects[i], &objects[j]) })
	for age, i := range ages {
		c.keys[i].age = uint16(age)
	}
	return c
}

// packed lets texts that are read together stand together.
func packed(names []name) []name {
	var all strings.Builder
	for _, n := range names {
		all.WriteString(n.text)
	}
	rest := all.String()
	for i := range names {
		n := len(names[i].text)
		names[i].text, rest = rest[:n], rest[n:]
	}
	return names
}

func newKey(o *Object, set *Settings) key {
	k := key{source: o.SourceMessageID, end: o.ActiveUntil, kinds: 1 << kindBit(o.Kind), reasons: o.Reasons}
	if o.OpenPoll() {
		k.end, k.reasons = o.LastTouchedAt+set.TTLs.Max.Milliseconds(), k.reasons|msg.OpenPoll
	}
	if o.DueAt != 0 {
		k.reasons |= msg.FutureReminder
	}
	k.score = set.Weights.ofObject(k.reasons)
	k.perLife = 1 / float64(max(k.end-o.LastTouchedAt, 1))
	return k
}

// hasTopics reports whether an object has a topic that is not "".
func (c *chat) hasTopics() bool {
	return len(c.topics) > 1 || len(c.topics) == 1 && c.topics[0].text != ""
}

// hashSource is below 1024. It scatters rows that follow each other: the factor is 2^64 by the golden ratio.
func hashSource(id int64) uint64 { return uint64(id) * 0x9E3779B97F4A7C15 >> (64 - 10) }

// ofSources adds the positions of the keys of sources to a set, which has room for all keys. Most other keys differ by
// their hash; only for the rest are sources compared one by one.
func (c *chat) ofSources(sources []int64, found positions) {
	var hashes [1024 / 64]uint64
	for _, id := range sources {
		h := hashSource(id)
		hashes[h/64] |= 1 << (h % 64)
	}
	for at := range c.keys {
		h := hashSource(c.keys[at].source)
		found[at>>6] |= hashes[h/64] >> (h % 64) & 1 << (at & 63)
	}
	for i, set := range found {
		for ; set != 0; set &= set - 1 {
			at := i*64 + bits.TrailingZeros64(set)
			if id := c.keys[at].source; id == 0 || !slices.Contains(sources, id) {
				found.remove(at)
			}
		}
	}
}
