package contextobjects

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// manyObjects fills an index with chats of 100 live objects each, of all kinds, in three topics.
func manyObjects(chats int) *Index {
	x := New(testSettings())
	rnd := rand.New(rand.NewPCG(1, 2))
	all := msg.ContextKinds()
	for c := range chats {
		jid := fmt.Sprintf("telegram:-100%d", c)
		objects := make([]Object, maxPerChat)
		for i := range objects {
			source := int64(c*maxPerChat + i)
			o := &objects[i]
			*o = Object{ChatJID: jid, Kind: all[rnd.IntN(len(all))], Topic: []string{"", "#deploy", "1234"}[rnd.IntN(3)], SourceMessageID: source,
				Label: fmt.Sprintf("Notes about it, number %d", source), CreatedBy: fmt.Sprintf("telegram:%d", rnd.IntN(10)),
				CreatedAt: start, LastTouchedAt: start + rnd.Int64N(60_000), Reasons: msg.ActivatedByFollowup}
			o.ID = msg.ContextObjectID(o.Kind, source)
			o.ActiveUntil = x.set.TTLs.until(o)
		}
		x.chats[jid] = newChat(objects, &x.set)
	}
	return x
}

// queries are of random chats, with all that costs time: a reply chain of 20, a sender and a filter.
func queries(chats, n int) []Query {
	rnd := rand.New(rand.NewPCG(3, 4))
	all := make([]Query, n)
	for i := range all {
		c := rnd.IntN(chats)
		q := Query{ChatJID: fmt.Sprintf("telegram:-100%d", c), Topic: "#deploy", TopicKnown: i%4 != 0, Topics: true, Sender: "telegram:3",
			Kinds: 1<<12 - 1, Max: []int{5, 20}[i%2], Now: start + 60_000}
		for range 20 {
			q.ReplyChain = append(q.ReplyChain, int64(c*maxPerChat+rnd.IntN(maxPerChat)))
		}
		all[i] = q
	}
	return all
}

func TestLookup_AllocatesNothing(t *testing.T) {
	x, all := manyObjects(10), queries(10, 64)
	out := make([]Match, 0, MaxResults)
	found, i := 0, 0
	allocs := testing.AllocsPerRun(1000, func() {
		found += len(x.Lookup(&all[i%len(all)], out).Matches)
		i++
	})
	if allocs != 0 || found == 0 {
		t.Errorf("%v allocations a lookup, %d found", allocs, found)
	}
}

// BenchmarkLookup looks up in 10^6 live objects, 100 a chat, as the tools do: one of the chats has been moved,
// and a lookup in 1,000 is by its former address. See docs/performance.md for its figures.
func BenchmarkLookup(b *testing.B) {
	const chats = 10_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := manyObjects(chats)
	runtime.GC()
	runtime.ReadMemStats(&after)
	st := storetest.Open(b)
	moved := "telegram:-1000"
	if err := st.Write(b.Context(), func(tx *store.Tx) error { return tx.MoveChat(moved, "telegram:-100123456", start) }); err != nil {
		b.Fatal(err)
	}
	all := queries(chats, 4096)
	for i := 0; i < len(all); i += 1000 {
		all[i].ChatJID = moved
	}
	if _, err := x.Follow(b.Context(), st.Reader, moved, start); err != nil {
		b.Fatal(err)
	}
	out := make([]Match, 0, MaxResults)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q := all[i%len(all)]
		var err error
		if q.ChatJID, err = x.Follow(b.Context(), st.Reader, q.ChatJID, start); err != nil {
			b.Fatal(err)
		}
		x.Lookup(&q, out)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(x.Len()), "B/object")
}

// BenchmarkFollow reads the moves again, as a lookup does once in followDelay: 100 of 10,000 chats have moved.
func BenchmarkFollow(b *testing.B) {
	const chats = 10_000
	x, st := manyObjects(chats), storetest.Open(b)
	if err := st.Write(b.Context(), func(tx *store.Tx) error {
		for i := range 100 {
			if err := tx.MoveChat(fmt.Sprintf("telegram:-100%d", i), fmt.Sprintf("telegram:-200%d", i), start); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	now := start
	for b.Loop() {
		now += followDelay.Milliseconds()
		if _, err := x.Follow(b.Context(), st.Reader, "telegram:-1005000", now); err != nil {
			b.Fatal(err)
		}
	}
}
