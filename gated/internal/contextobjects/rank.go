package contextobjects

import "arizuko/pkg/msg"

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

// key is what ranking reads of an object: it is compact, so that a chat's keys are read from few
// cache lines.
type key struct {
	source  int64
	end     int64   // when the recency is 0: ActiveUntil, for an open poll Max after the last touch
	perLife float64 // 1 / (end - last touch)
	due     int64
	score   int32 // what depends on no query
	reasons Reasons
	kinds   KindSet
	topic   uint16 // position in chat.topics
	user    uint16 // position in chat.users
}

// word is a text with its hash, so that most other texts differ without a read of them.
type word struct {
	hash uint64
	text string
}

// chat is the objects of one chat. It is never changed: a write replaces it. keys and objects have
// the same order: last touched first, then by id. That order breaks ties of scores.
type chat struct {
	keys    []key
	objects []Object
	topics  []word
	users   []word // users[0] is "", the unknown user
	named   bool   // a topic is not ""
}

// ranking is one query on one chat.
type ranking struct {
	*Query
	chat    *chat
	weights *Weights
	scope   Scope     // beside the reply chain
	topic   int       // position of the caller's topic, -1 if no object has it
	user    int       // position of the sender, -1 if no object is theirs or it is unknown
	chain   [4]uint64 // bit n is set if the reply chain has an id that is n modulo 256
	penalty bool
	chained bool // an object in the reply chain was found
	added   added
}

// candidate is an object with its score.
type candidate struct{ score, at int }

func (r *ranking) prepare() {
	r.topic, r.user = find(r.chat.topics, r.Topic), -1
	if r.Sender != "" {
		r.user = find(r.chat.users, r.Sender)
	}
	for _, id := range r.ReplyChain {
		r.chain[id>>6&3] |= 1 << (id & 63)
	}
	topics := r.Topics || r.TopicKnown && r.Topic != "" || r.chat.named
	r.scope = ScopeChat
	if topics && r.TopicKnown {
		r.scope = ScopeTopic
	}
	r.penalty = topics && !r.TopicKnown
	r.prepareScores()
}

func (r *ranking) inChain(id int64) bool {
	if r.chain[id>>6&3]&(1<<(id&63)) == 0 || id == 0 {
		return false
	}
	for _, c := range r.ReplyChain {
		if c == id {
			return true
		}
	}
	return false
}

// score rates an object; ok is false if the query does not reach it. explain has the same cases. What
// differs from object to object is added without a jump: the processor cannot predict it.
func (r *ranking) score(k *key) (score int, ok bool) {
	if r.Kinds&k.kinds == 0 && r.Kinds != 0 || k.end <= r.Now && k.reasons&msg.OpenPoll == 0 && !r.IncludeInactive {
		return 0, false
	}
	inTopic := one(int(k.topic) == r.topic)
	w := &r.added
	score = int(k.score) + w.always + w.topic*inTopic + w.open*one(k.due > r.Now) + w.owned*one(int(k.user) == r.user)
	if r.inChain(k.source) {
		score += w.chain
		r.chained = true
	} else if inTopic == 0 && r.scope == ScopeTopic {
		return 0, false
	}
	left := r.left(k)
	// An open poll is never near its end.
	score += w.nearExpiry * one(left <= nearExpiry) * one(k.reasons&msg.OpenPoll == 0)
	return score + int(w.recent*left+rounding), true
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

func one(holds bool) (n int) {
	if holds {
		n = 1
	}
	return n
}

// left is the part of its TTL that an object has left. A clock that went back makes nothing newer than
// new.
func (r *ranking) left(k *key) float64 {
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
func (r *ranking) explain(k *key) Reasons {
	reasons := k.reasons
	add := func(holds bool, reason Reasons) {
		if holds {
			reasons |= reason
		}
	}
	inChain, recent := r.inChain(k.source), r.left(k) > nearExpiry
	add(inChain, msg.SameReplyChain)
	add(!inChain && r.penalty, msg.ChatScopeFallback)
	add(r.scope == ScopeTopic && int(k.topic) == r.topic, msg.SameTopic)
	add(k.due > r.Now, msg.FutureReminder)
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

// lookup appends the best matches to out, which is not reallocated if it has room for Query.Max.
func (r *ranking) lookup(out []Match) Result {
	r.prepare()
	var best [MaxResults]candidate
	limit, n := r.limit(), 0
	res := Result{Scope: r.scope}
	for i := range r.chat.keys {
		score, ok := r.score(&r.chat.keys[i])
		if !ok {
			continue
		}
		res.Found++
		if n == limit && score <= best[n-1].score {
			continue
		}
		n = min(n+1, limit)
		at := n - 1
		for ; at > 0 && best[at-1].score < score; at-- {
			best[at] = best[at-1]
		}
		best[at] = candidate{score, i}
	}
	for _, c := range best[:n] {
		out = append(out, r.match(c))
	}
	if r.chained {
		res.Scope = ScopeReplyChain
	}
	res.Matches, res.Truncated = out, res.Found > n
	return res
}

func (r *ranking) limit() int { return min(max(r.Max, 1), MaxResults) }

func (r *ranking) match(c candidate) Match {
	highest := r.weights.highest(r.scope == ScopeTopic || r.penalty)
	return Match{&r.chat.objects[c.at], c.score, confidence(c.score, highest), r.explain(&r.chat.keys[c.at])}
}

// confidence is 0 to 1, in thousandths.
func confidence(score, highest int) float64 {
	if highest <= 0 {
		return 0
	}
	score = min(max(score, 0), highest)
	return float64((2000*score+highest)/(2*highest)) / 1000
}
