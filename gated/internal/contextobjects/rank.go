package contextobjects

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
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
	ChatJID string // a former address of the chat will do
	// Topic of the caller; "" is a topic like any other in a chat that has topics. TopicKnown is false
	// if the caller has none: then the whole chat counts, with a penalty.
	Topic      string
	TopicKnown bool
	// Topics says that the chat has topics. So does a topic of the caller or of an object. In a chat
	// without topics the whole chat counts, without a penalty.
	Topics     bool
	ReplyChain []int64 // rows of messages
	Sender     string  // "" if unknown
	Kinds      []Kind  // empty for all
	Max        int     // below 1: 1; above MaxResults: MaxResults
	Now        int64   // unix ms
}

// Match is an object that a query found.
type Match struct {
	Object     *Object
	Score      int
	Confidence float64 // score by the highest possible score, 0 to 1, in thousandths
	Reasons    Reasons // the object's, and the facts that counted for and against it
}

// Result is the answer to a query.
type Result struct {
	Matches   []Match // best first
	Scope     Scope   // the narrowest in which something was found, else the last one tried
	Found     int     // how many there are
	Truncated bool    // there are more than Query.Max
}

// Lookup finds active objects. It touches nothing.
func (x *Objects) Lookup(ctx context.Context, r store.Reader, q *Query) (Result, error) {
	objects, err := x.active(ctx, r, q)
	if err != nil {
		return Result{}, err
	}
	return x.lookup(q, objects), nil
}

func (x *Objects) lookup(q *Query, objects []Object) Result {
	all, scope := x.rank(q, objects)
	return q.result(all, scope)
}

// result is the answer to a query that matches all these objects in a scope, best first.
func (q *Query) result(all []Match, scope Scope) Result {
	limit := min(len(all), max(q.Max, 1), MaxResults)
	return Result{Matches: all[:limit], Scope: narrowest(all, scope), Found: len(all), Truncated: limit < len(all)}
}

// narrowest is the reply chain if an object in it was found.
func narrowest(all []Match, scope Scope) Scope {
	if slices.ContainsFunc(all, func(m Match) bool { return m.Reasons&msg.SameReplyChain != 0 }) {
		return ScopeReplyChain
	}
	return scope
}

// ranking is one query on the objects of one chat.
type ranking struct {
	*Query
	set     *Objects
	scope   Scope // beside the reply chain
	penalty bool  // the chat has topics, and the caller's is unknown
	highest int   // the highest possible score
}

// rank returns all objects that the query reaches, best first, and the scope in which it looked beside the reply chain.
// Of equal scores the object touched last comes first, then the smallest id.
func (x *Objects) rank(q *Query, objects []Object) ([]Match, Scope) {
	topics := q.Topics || q.TopicKnown && q.Topic != "" ||
		slices.ContainsFunc(objects, func(o Object) bool { return o.Topic != "" })
	r := ranking{Query: q, set: x, scope: ScopeChat, penalty: topics && !q.TopicKnown,
		highest: x.Weights.highest(topics)}
	if topics && q.TopicKnown {
		r.scope = ScopeTopic
	}
	all := make([]Match, 0, len(objects))
	for i := range objects {
		if o := &objects[i]; r.reaches(o) {
			all = append(all, r.match(o))
		}
	}
	slices.SortFunc(all, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Object.LastTouchedAt, a.Object.LastTouchedAt),
			strings.Compare(a.Object.ID, b.Object.ID))
	})
	return all, r.scope
}

func (r *ranking) inChain(o *Object) bool {
	return o.SourceMessageID != 0 && slices.Contains(r.ReplyChain, o.SourceMessageID)
}

func (r *ranking) inScope(o *Object) bool { return r.scope == ScopeChat || o.Topic == r.Topic }

// reaches reports whether an object is active, of a kind asked for, and in the scope or the reply chain.
func (r *ranking) reaches(o *Object) bool {
	return o.ActiveUntil > r.Now && (len(r.Kinds) == 0 || slices.Contains(r.Kinds, o.Kind)) &&
		(r.inScope(o) || r.inChain(o))
}

// nearExpiry is the part of the TTL that counts as its end. rounding keeps a product that is whole but
// for the last bits from being cut to the number below.
const (
	nearExpiry = 0.2
	rounding   = 1e-6
)

// match rates an object that the query reaches.
func (r *ranking) match(o *Object) Match {
	w, left, inChain := &r.set.Weights, r.left(o), r.inChain(o)
	m := Match{Object: o, Reasons: o.Reasons, Score: int(float64(w.Recent)*left + rounding)}
	add := func(holds bool, weight int, reason Reasons) {
		if holds {
			m.Score, m.Reasons = m.Score+weight, m.Reasons|reason
		}
	}
	add(inChain, w.ReplyChain, msg.SameReplyChain)
	add(!inChain && r.penalty, w.Fallback, msg.ChatScopeFallback)
	add(r.scope == ScopeTopic && r.inScope(o), w.Topic, msg.SameTopic)
	add(len(r.Kinds) > 0, w.Kind, 0)
	add(o.Reasons&explicit != 0, w.Explicit, 0)
	add(o.OpenPoll(), w.Open, msg.OpenPoll)
	add(o.DueAt > r.Now, w.Open, msg.FutureReminder)
	add(r.Sender != "" && o.CreatedBy == r.Sender, w.Owned, msg.SenderOwned)
	add(left > nearExpiry, 0, msg.TouchedRecently)
	add(left <= nearExpiry && !o.OpenPoll(), w.NearExpiry, msg.NearExpiry)
	m.Confidence = confidence(m.Score, r.highest)
	return m
}

// left is the part of its TTL that an object has left, 0 to 1; an open poll counts as if it had the longest TTL. A
// clock that went back makes nothing newer than new.
func (r *ranking) left(o *Object) float64 {
	end := o.ActiveUntil
	if o.OpenPoll() {
		end = o.LastTouchedAt + r.set.TTLs.Max.Milliseconds()
	}
	life := float64(max(end-o.LastTouchedAt, 1))
	return min(max(float64(end-r.Now)*(1/life), 0), 1)
}

// confidence is 0 to 1, in thousandths.
func confidence(score, highest int) float64 {
	if highest <= 0 {
		return 0
	}
	score = min(max(score, 0), highest)
	return float64((2000*score+highest)/(2*highest)) / 1000
}
