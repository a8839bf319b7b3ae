package contextobjects

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

// TestLookup_AnyObjects_KeepsItsRules looks up in chats of any size, whose objects come in any order.
func TestLookup_AnyObjects_KeepsItsRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 3, 40, maxPerChat, 300}).Draw(t, "size") // a merged chat has more than maxPerChat
		objects := rapid.SliceOfNDistinct(rapid.Custom(drawObject), size/2, size, func(o Object) string { return o.ID }).Draw(t, "objects")
		q := drawQuery(t)
		checkResult(t, &q, objects, testObjects().lookup(&q, objects))
	})
}

func drawObject(t *rapid.T) Object {
	o := Object{ChatJID: chatA, Kind: rapid.SampledFrom(msg.ContextKinds()).Draw(t, "kind"), CreatedAt: start,
		SourceMessageID: rapid.Int64Range(0, 60).Draw(t, "source"),
		Topic:           rapid.SampledFrom([]string{"", "#a", "7"}).Draw(t, "topic"),
		CreatedBy:       rapid.SampledFrom([]string{"", alice, bob}).Draw(t, "user"),
		LastTouchedAt:   start + 60_000*rapid.Int64Range(0, 3).Draw(t, "touched"),
		Reasons:         Reasons(1 << rapid.IntRange(1, 10).Draw(t, "event"))}
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

// checkResult checks each match alone, that it is not better than the one before it, and how many there are.
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
