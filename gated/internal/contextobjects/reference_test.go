package contextobjects

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

// TestLookup_IsTheReference compares lookups in chats of any size with a plain model, and checks rules that hold for any
// result. The objects come in any order.
func TestLookup_IsTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := testObjects()
		x.Weights = Weights{
			ReplyChain: drawWeight(t), Topic: drawWeight(t), Recent: drawWeight(t), Explicit: drawWeight(t), Kind: drawWeight(t),
			Open: drawWeight(t), Owned: drawWeight(t), Fallback: -drawWeight(t), NearExpiry: -drawWeight(t),
		}
		size := rapid.SampledFrom([]int{0, 3, 40, maxPerChat, 300}).Draw(t, "size") // a merged chat has more than maxPerChat
		objects := rapid.SliceOfNDistinct(rapid.Custom(drawAnyObject), size/2, size, func(o Object) string { return o.ID }).Draw(t, "objects")
		q := drawQuery(t)
		got := x.lookup(&q, objects)
		checkResult(t, &q, objects, got)
		if diff := gocmp.Diff(reference(&x.Weights, &q, objects), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func drawWeight(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 1, 10, 30, maxWeight}).Draw(t, "weight")
}

func drawAnyObject(t *rapid.T) Object {
	o := drawObject(t)
	o.SourceMessageID = rapid.Int64Range(0, 60).Draw(t, "source")
	o.ID = string(o.Kind) + ":" + rapid.StringMatching(`[a-z]{2}`).Draw(t, "id")
	switch o.Kind {
	case msg.ContextPoll:
		o.ClosedAt = rapid.SampledFrom([]int64{0, start}).Draw(t, "closed")
	case msg.ContextReminder:
		o.DueAt = rapid.SampledFrom([]int64{0, start, start + ms(time.Hour)}).Draw(t, "due")
	}
	o.ActiveUntil = testObjects().TTLs.until(&o)
	return o
}

// reference is what Lookup returns.
func reference(w *Weights, q *Query, objects []Object) Result {
	topics := q.Topics || q.TopicKnown && q.Topic != "" || slices.ContainsFunc(objects, func(o Object) bool { return o.Topic != "" })
	res := Result{Scope: ScopeChat}
	if topics && q.TopicKnown {
		res.Scope = ScopeTopic
	}
	scope := res.Scope
	for i := range objects {
		o := &objects[i]
		inChain := o.SourceMessageID != 0 && slices.Contains(q.ReplyChain, o.SourceMessageID)
		inScope := scope == ScopeChat || o.Topic == q.Topic
		active := o.OpenPoll() || o.ActiveUntil > q.Now
		if !active || !inChain && !inScope || q.Kinds != nil && !slices.Contains(q.Kinds, o.Kind) {
			continue
		}
		m := Match{Object: o, Reasons: o.Reasons}
		add := func(holds bool, weight int, reason Reasons) {
			if holds {
				m.Score, m.Reasons = m.Score+weight, m.Reasons|reason
			}
		}
		if inChain {
			res.Scope = ScopeReplyChain
		}
		left := referenceLeft(o, q.Now)
		add(inChain, w.ReplyChain, msg.SameReplyChain)
		add(!inChain && topics && !q.TopicKnown, w.Fallback, msg.ChatScopeFallback)
		add(scope == ScopeTopic && o.Topic == q.Topic, w.Topic, msg.SameTopic)
		add(q.Kinds != nil, w.Kind, 0)
		add(o.Reasons&explicit != 0, w.Explicit, 0)
		add(o.OpenPoll(), w.Open, msg.OpenPoll)
		add(o.DueAt > q.Now, w.Open, msg.FutureReminder)
		add(q.Sender != "" && o.CreatedBy == q.Sender, w.Owned, msg.SenderOwned)
		add(true, int(float64(w.Recent)*left+rounding), 0)
		add(left > nearExpiry, 0, msg.TouchedRecently)
		add(left <= nearExpiry && !o.OpenPoll(), w.NearExpiry, msg.NearExpiry)
		m.Confidence = confidence(m.Score, w.highest(topics))
		res.Matches = append(res.Matches, m)
	}
	slices.SortFunc(res.Matches, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Object.LastTouchedAt, a.Object.LastTouchedAt), strings.Compare(a.Object.ID, b.Object.ID))
	})
	res.Found = len(res.Matches)
	res.Matches = res.Matches[:min(len(res.Matches), max(q.Max, 1), MaxResults)]
	res.Truncated = res.Found > len(res.Matches)
	return res
}

// referenceLeft is the part of its TTL that an object has left, 0 to 1.
func referenceLeft(o *Object, now int64) float64 {
	end := o.ActiveUntil
	if o.OpenPoll() {
		end = o.LastTouchedAt + testObjects().TTLs.Max.Milliseconds()
	}
	life := float64(max(end-o.LastTouchedAt, 1))
	return min(max(float64(end-now)*(1/life), 0), 1)
}

func drawObject(t *rapid.T) Object {
	kind := rapid.SampledFrom(msg.ContextKinds()).Draw(t, "kind")
	source := rapid.Int64Range(1, 30).Draw(t, "source")
	o := Object{ChatJID: chatA, Kind: kind, ID: msg.ContextObjectID(kind, source), SourceMessageID: source,
		Topic:     rapid.SampledFrom([]string{"", "#a", "7"}).Draw(t, "topic"),
		CreatedBy: rapid.SampledFrom([]string{"", alice, bob}).Draw(t, "user"), CreatedAt: start,
		Reasons: Reasons(1 << rapid.IntRange(1, 10).Draw(t, "event"))}
	o.LastTouchedAt = start + 60_000*rapid.Int64Range(0, 3).Draw(t, "touched")
	o.ActiveUntil = testObjects().TTLs.until(&o)
	return o
}

func drawQuery(t *rapid.T) Query {
	return Query{ChatJID: chatA, Topic: rapid.SampledFrom([]string{"", "#a"}).Draw(t, "topic"), TopicKnown: rapid.Bool().Draw(t, "known"),
		Topics: rapid.Bool().Draw(t, "topics"), ReplyChain: rapid.SliceOfN(rapid.Int64Range(0, 40), 0, 5).Draw(t, "chain"),
		Sender: rapid.SampledFrom([]string{"", alice}).Draw(t, "sender"), Kinds: drawKinds(t),
		Max: rapid.IntRange(-1, 30).Draw(t, "max"), Now: start + ms(time.Minute)*rapid.Int64Range(0, 150).Draw(t, "now")}
}

func drawKinds(t *rapid.T) []Kind {
	if rapid.Bool().Draw(t, "all kinds") {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(msg.ContextKinds()), 1, 12).Draw(t, "kinds")
}

// checkResult checks each match alone, and that it is not better than the one before it.
func checkResult(t *rapid.T, q *Query, objects []Object, res Result) {
	for i, m := range res.Matches {
		o := m.Object
		inChain := o.SourceMessageID != 0 && slices.Contains(q.ReplyChain, o.SourceMessageID)
		switch {
		case o.ActiveUntil <= q.Now:
			t.Fatalf("%s has ended", o.ID)
		case q.Kinds != nil && !slices.Contains(q.Kinds, o.Kind):
			t.Fatalf("%s is of a kind that is not allowed", o.ID)
		case res.Scope == ScopeTopic && o.Topic != q.Topic, q.TopicKnown && q.Topic != "" && o.Topic != q.Topic && !inChain:
			t.Fatalf("%s is of another topic", o.ID)
		case inChain != has(m.Reasons, msg.SameReplyChain), m.Confidence < 0, m.Confidence > 1:
			t.Fatalf("%s: confidence %v, %v", o.ID, m.Confidence, m.Reasons.Codes())
		case i == 0:
			continue
		}
		p := res.Matches[i-1]
		if p.Score < m.Score || p.Score == m.Score && (p.Object.LastTouchedAt < o.LastTouchedAt ||
			p.Object.LastTouchedAt == o.LastTouchedAt && p.Object.ID >= o.ID) {
			t.Fatalf("%s (%d) is before %s (%d)", p.Object.ID, p.Score, o.ID, m.Score)
		}
	}
	if res.Found > len(objects) || res.Truncated != (res.Found > len(res.Matches)) || len(res.Matches) > MaxResults {
		t.Fatalf("%d of %d, truncated %v", len(res.Matches), res.Found, res.Truncated)
	}
}
