package contextobjects

import (
	"math/bits"

	"arizuko/pkg/msg"
)

// Bounds of Query.Max.
const (
	DefaultResults = 5
	MaxResults     = 20
)

// Scope is how far from the caller an object was looked for.
type Scope string

// Scopes, the narrowest first.
const (
	ScopeReplyChain Scope = "reply_chain"
	ScopeTopic      Scope = "topic"
	ScopeChat       Scope = "chat"
)

// Query asks for the active objects of one chat.
type Query struct {
	ChatJID string
	// Topic of the caller; "" is a topic like any other in a chat that has topics. TopicKnown is false
	// if the caller has none: then the whole chat counts, with a penalty.
	Topic      string
	TopicKnown bool
	// Topics says that the chat has topics. So does a topic of the caller or of an object. In a chat
	// without topics the whole chat counts, without a penalty.
	Topics     bool
	ReplyChain []int64 // rows of messages
	Sender     string  // "" if unknown
	Kinds      KindSet
	Max        int   // below 1: 1; above MaxResults: MaxResults
	Now        int64 // unix ms
	// IncludeInactive also returns expired objects that are still in memory, for tests.
	IncludeInactive bool
}

// Match is an object that a query found. Object must not be changed.
type Match struct {
	Object     *Object
	Score      int
	Confidence float64 // score by the highest possible score, 0 to 1, in thousandths
	Reasons    Reasons // the object's, and what counted for and against it
}

// Result is what a query found.
type Result struct {
	Matches   []Match // best first, in the buffer that the caller passed
	Scope     Scope   // the narrowest in which something was found, else the last one tried
	Found     int     // how many there are
	Truncated bool    // there are more than Query.Max
}

// ranking is one query on one chat.
type ranking struct {
	*Query
	chat     chat
	weights  *Weights
	scope    Scope // beside the reply chain
	from, to int   // the keys in that scope: all of the chat's, or those of the topic
	user     int   // position of the sender, -1 if no object is theirs or it is unknown
	highest  int   // the highest possible score
	penalty  bool
	chained  bool // an object in the reply chain was found
	added    added
}

// rank is an object with its score, such that the better one of two is the greater one: the score in the upper 32 bits,
// below it the age, inverted, and the position of the key.
type rank int64

func newRank(score int, age uint16, at int) rank {
	return rank(score)<<32 | rank(^age)<<16 | rank(at)
}

func (r rank) score() int { return int(r >> 32) }
func (r rank) at() int    { return int(r & 0xffff) }

// roomForRanks is how many ranks a query has room for on its stack. Chats that were merged can have more objects, until
// the next one is stored.
const roomForRanks = 128

// positions is a set of positions of keys.
type positions []uint64

// roomForPositions is for twice as many keys as roomForRanks.
const roomForPositions = 2 * roomForRanks / 64

func (p positions) remove(at int)   { p[at>>6] &^= 1 << (at & 63) }
func (p positions) has(at int) bool { return p[at>>6]>>(at&63)&1 != 0 }

// prepare finds the scope.
func (r *ranking) prepare() {
	topics := r.Topics || r.TopicKnown && r.Topic != "" || r.chat.hasTopics()
	r.penalty = topics && !r.TopicKnown
	r.scope, r.from, r.to = ScopeChat, 0, len(r.chat.keys)
	if topics && r.TopicKnown {
		r.scope = ScopeTopic
		r.to = 0
		if i := find(r.chat.topics, r.Topic); i >= 0 {
			r.from, r.to = int(r.chat.topics[i].from), int(r.chat.topics[i].to)
		}
	}
	r.user = -1
	if r.Sender != "" {
		r.user = find(r.chat.users, r.Sender)
	}
	r.highest = r.weights.highest(r.scope == ScopeTopic || r.penalty)
	r.prepareScores()
}

// chain returns which keys are of the reply chain. It uses room if it is large enough.
func (r *ranking) chain(room positions) positions {
	if len(r.chat.keys) > 64*len(room) {
		room = make(positions, len(r.chat.keys)/64+1)
	}
	if len(r.ReplyChain) > 0 {
		r.chat.ofSources(r.ReplyChain, room)
	}
	return room
}

// added is what the query adds to scores, by what an object is.
type added struct {
	always int // an object outside of the reply chain
	chain  int // one in it, beside always

	topic, open, owned, nearExpiry int
	recent                         float64
}

func (r *ranking) prepareScores() {
	w := r.weights
	a := added{chain: w.ReplyChain, open: w.Open, owned: w.Owned, nearExpiry: w.NearExpiry, recent: float64(w.Recent)}
	if r.scope == ScopeTopic {
		a.topic = w.Topic
	} else if r.penalty {
		a.always, a.chain = w.Fallback, w.ReplyChain-w.Fallback
	}
	if r.Kinds != 0 {
		a.always += w.Kind
	}
	r.added = a
}

// ranks appends the ranks of all objects that the query reaches, those of the reply chain first: they are the best
// ones, as a rule, and best is fast if these come first.
func (r *ranking) ranks(chain positions, all []rank) []rank {
	for i, set := range chain {
		for ; set != 0; set &= set - 1 {
			if at := i*64 + bits.TrailingZeros64(set); r.reaches(at) {
				all = append(all, r.rank(at, true))
			}
		}
	}
	r.chained = len(all) > 0
	for at := r.from; at < r.to; at++ {
		if r.reaches(at) && !chain.has(at) {
			all = append(all, r.rank(at, false))
		}
	}
	return all
}

func (r *ranking) inScope(at int) bool { return r.from <= at && at < r.to }

// reaches reports whether an object in the scope or the reply chain is of a kind asked for, and active.
func (r *ranking) reaches(at int) bool {
	k := &r.chat.keys[at]
	return (r.Kinds&k.kinds != 0 || r.Kinds == 0) && (k.end > r.Now || k.reasons&msg.OpenPoll != 0 || r.IncludeInactive)
}

// rank rates an object. explain has the same cases. What differs from object to object is added without a jump: the
// processor cannot predict it.
func (r *ranking) rank(at int, inChain bool) rank {
	k, w, left := &r.chat.keys[at], &r.added, r.left(at)
	score := int(k.score) + w.always + w.chain*one(inChain) + w.topic*one(r.inScope(at)) + w.open*one(r.isDue(at)) +
		w.owned*one(int(k.user) == r.user)
	// An open poll is never near its end.
	score += w.nearExpiry * one(left <= nearExpiry) * one(k.reasons&msg.OpenPoll == 0)
	score += int(w.recent*left + rounding)
	return newRank(score, k.age, at)
}

// isDue reports whether a reminder is still to fire.
func (r *ranking) isDue(at int) bool {
	return r.chat.keys[at].reasons&msg.FutureReminder != 0 && r.chat.objects[at].DueAt > r.Now
}

func one(holds bool) (n int) {
	if holds {
		n = 1
	}
	return n
}

// left is the part of its TTL that an object has left. A clock that went back makes nothing newer than
// new.
func (r *ranking) left(at int) float64 {
	k := &r.chat.keys[at]
	left := float64(k.end-r.Now) * k.perLife
	if left > 1 {
		return 1
	}
	if left < 0 {
		return 0
	}
	return left
}

// explain returns the reasons of an object that the query reaches.
func (r *ranking) explain(at int, inChain bool) Reasons {
	k := &r.chat.keys[at]
	reasons := k.reasons &^ msg.FutureReminder
	add := func(holds bool, reason Reasons) {
		if holds {
			reasons |= reason
		}
	}
	recent := r.left(at) > nearExpiry
	add(inChain, msg.SameReplyChain)
	add(!inChain && r.penalty, msg.ChatScopeFallback)
	add(r.scope == ScopeTopic && r.inScope(at), msg.SameTopic)
	add(r.isDue(at), msg.FutureReminder)
	add(int(k.user) == r.user, msg.SenderOwned)
	add(recent, msg.TouchedRecently)
	add(!recent && k.reasons&msg.OpenPoll == 0, msg.NearExpiry)
	return reasons
}

// nearExpiry is the part of the TTL that counts as its end. rounding keeps a product that is whole but
// for the last bits from being cut to the number below.
const (
	nearExpiry = 0.2
	rounding   = 1e-6
)

// best keeps the greatest ranks, at most limit, the greatest first.
func best(ranks []rank, limit int) []rank {
	n := 0 // ranks[:n] are sorted, all that were read and are not among them are less
	for _, r := range ranks {
		if n == limit && r < ranks[n-1] {
			continue
		}
		n = min(n+1, limit)
		at := n - 1
		for ; at > 0 && ranks[at-1] < r; at-- {
			ranks[at] = ranks[at-1]
		}
		ranks[at] = r
	}
	return ranks[:n]
}

func (r *ranking) limit() int { return min(max(r.Max, 1), MaxResults) }

// result appends the matches of ranks, best first, to out. objects are the chat's: apart from the ranking they let it,
// and the query, stay on the stack.
func (r *ranking) result(chain positions, ranks []rank, objects []Object, out []Match) Result {
	res := Result{Scope: r.scope, Found: len(ranks)}
	if r.chained {
		res.Scope = ScopeReplyChain
	}
	top := best(ranks, r.limit())
	for _, rank := range top {
		out = append(out, r.match(rank, &objects[rank.at()], chain.has(rank.at())))
	}
	res.Matches, res.Truncated = out, res.Found > len(top)
	return res
}

func (r *ranking) match(rank rank, o *Object, inChain bool) Match {
	return Match{o, rank.score(), confidence(rank.score(), r.highest), r.explain(rank.at(), inChain)}
}

// confidence is 0 to 1, in thousandths.
func confidence(score, highest int) float64 {
	if highest <= 0 {
		return 0
	}
	score = min(max(score, 0), highest)
	return float64((2000*score+highest)/(2*highest)) / 1000
}
