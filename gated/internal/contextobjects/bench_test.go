package contextobjects

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func benchChat(c int) string { return fmt.Sprintf("telegram:-100%d", c) }

// manyObjects are maxPerChat live objects of a chat, of all kinds, in three topics.
func manyObjects(chat int) []Object {
	rnd := rand.New(rand.NewPCG(1, uint64(chat)))
	all := msg.ContextKinds()
	objects := make([]Object, maxPerChat)
	for i := range objects {
		source := int64(chat*maxPerChat + i + 1)
		o := &objects[i]
		*o = Object{ChatJID: benchChat(chat), Kind: all[rnd.IntN(len(all))], Topic: []string{"", "#deploy", "1234"}[rnd.IntN(3)],
			SourceMessageID: source, Label: fmt.Sprintf("Notes about it, number %d", source), CreatedBy: fmt.Sprintf("telegram:%d", rnd.IntN(10)),
			CreatedAt: start, LastTouchedAt: start + rnd.Int64N(60_000), Reasons: msg.ActivatedByFollowup}
		o.ID = msg.ContextObjectID(o.Kind, source)
		o.ActiveUntil = testObjects().TTLs.until(o)
	}
	return objects
}

// slowQuery has everything that costs time: a reply chain of 20, a sender and a filter.
func slowQuery(chat, i int) *Query {
	q := &Query{ChatJID: benchChat(chat), Topic: "#deploy", TopicKnown: i%4 != 0, Topics: true, Sender: "telegram:3",
		Kinds: msg.ContextKinds(), Max: []int{5, 20}[i%2], Now: start + 60_000}
	for n := range 20 {
		q.ReplyChain = append(q.ReplyChain, int64(chat*maxPerChat+(i+7*n)%maxPerChat+1))
	}
	return q
}

// BenchmarkRank is the part of a lookup after the read. See docs/performance.md for its budget.
func BenchmarkRank(b *testing.B) {
	x, objects := testObjects(), manyObjects(1)
	queries := make([]*Query, 64)
	for i := range queries {
		queries[i] = slowQuery(1, i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if len(x.lookup(queries[i%len(queries)], objects).Matches) == 0 {
			b.Fatal("nothing found")
		}
	}
}

// BenchmarkLookup looks up in a database of 10^6 live objects, 100 a chat.
func BenchmarkLookup(b *testing.B) {
	const chats = 10_000
	x, st := testObjects(), storetest.Open(b)
	write := func(fn func(tx *store.Tx) error) {
		if err := st.Write(b.Context(), fn); err != nil {
			b.Fatal(err)
		}
	}
	write(func(tx *store.Tx) error {
		for _, o := range manyObjects(0) {
			if err := x.store(tx, o, start); err != nil {
				return err
			}
		}
		return nil
	})
	write(func(tx *store.Tx) error { // the same objects in all other chats
		return tx.Exec(`WITH RECURSIVE n(c) AS (SELECT 1 UNION ALL SELECT c+1 FROM n WHERE c < ?-1)
			INSERT INTO context_objects (chat_id, object_id, kind, topic_id, source_message_id, label, url, created_at, last_touched_at,
				activation_reasons, created_by_user_id, created_by_bot, ttl_class, active_until)
			SELECT 'telegram:-100' || c, object_id, kind, topic_id, source_message_id, label, url, created_at, last_touched_at,
				activation_reasons, created_by_user_id, created_by_bot, ttl_class, active_until
			FROM n, context_objects WHERE chat_id = 'telegram:-1000'`, chats)
	})
	rnd := rand.New(rand.NewPCG(3, 4))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q := slowQuery(0, i)
		q.ChatJID = benchChat(rnd.IntN(chats))
		if res, err := x.Lookup(b.Context(), st.Reader, q); err != nil || res.Found == 0 {
			b.Fatal(res, err)
		}
	}
}
