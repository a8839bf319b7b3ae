package contextobjects

import (
	"testing"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const (
	chatA, chatB = "telegram:-1", "telegram:-2"
	alice, bob   = "telegram:11", "telegram:12"
	// start is a time in unix ms.
	start = int64(1_800_000_000_000)
)

func ms(d time.Duration) int64 { return d.Milliseconds() }

func testSettings() Settings {
	return Settings{Weights: DefaultWeights(), TTLs: TTLs{
		Medium: 2 * time.Hour, Media: time.Hour, Short: 20 * time.Minute, PollGrace: 15 * time.Minute, Max: 24 * time.Hour,
	}}
}

// fixture is an index with its journal and a clock.
type fixture struct {
	t    *testing.T
	path string
	st   *store.Store
	x    *Index
	now  int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	path := storetest.Path(t)
	f := &fixture{t: t, path: path, st: storetest.OpenAt(t, path, nil), now: start}
	f.restart()
	return f
}

// restart reads the index from the journal again.
func (f *fixture) restart() {
	f.t.Helper()
	x, err := Open(f.t.Context(), testSettings(), f.st, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	f.x = x
}

func (f *fixture) pass(d time.Duration) { f.now += ms(d) }

func (f *fixture) write(fn func(tx *store.Tx) error) {
	f.t.Helper()
	if err := f.st.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// activate makes an object active at the fixture's time.
func (f *fixture) activate(event Event, o Object) (stored Object) {
	f.t.Helper()
	f.write(func(tx *store.Tx) (err error) {
		stored, err = f.x.Activate(tx, event, o, f.now)
		return err
	})
	return stored
}

// object is one of chat A's default topic.
func object(kind Kind, source int64) Object {
	return Object{ChatJID: chatA, Kind: kind, SourceMessageID: source}
}

func inTopic(topic string, o Object) Object {
	o.Topic = topic
	return o
}

// query asks for everything that a topic of chat A has.
func (f *fixture) query(topic string) *Query {
	return &Query{ChatJID: chatA, Topic: topic, TopicKnown: true, Max: MaxResults, Now: f.now}
}

func (f *fixture) lookup(q *Query) Result { return f.x.Lookup(q, nil) }

func ids(matches []Match) []string {
	all := []string{}
	for _, m := range matches {
		all = append(all, m.Object.ID)
	}
	return all
}

// want checks which objects a query finds, in their order.
func (f *fixture) want(what string, q *Query, scope Scope, want ...string) Result {
	f.t.Helper()
	res := f.lookup(q)
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, ids(res.Matches)); diff != "" {
		f.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	if res.Scope != scope {
		f.t.Errorf("%s: scope %s, want %s", what, res.Scope, scope)
	}
	return res
}

// journal is what is stored for chats A and B, by id.
func (f *fixture) journal() map[string]Object {
	f.t.Helper()
	all := map[string]Object{}
	err := rows.EachContextObject(f.t.Context(), f.st.Reader, 0, func(o Object) { all[o.ChatJID+" "+o.ID] = o })
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// memory is what the index has, by id.
func (x *Index) memory() map[string]Object {
	all := map[string]Object{}
	for _, c := range x.chats {
		for _, o := range c.objects {
			all[o.ChatJID+" "+o.ID] = o
		}
	}
	return all
}

func has(r, reason Reasons) bool { return r&reason != 0 }

// poll is an open poll of chat A.
func poll(id int64) Object {
	return Object{ChatJID: chatA, Kind: msg.ContextPoll, ID: msg.ContextObjectID(msg.ContextPoll, id), Label: "Lunch?"}
}
