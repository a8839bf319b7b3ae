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
	newer        = "telegram:-1001" // to which chat A moves
	alice, bob   = "telegram:11", "telegram:12"
	// start is a time in unix ms.
	start = int64(1_800_000_000_000)
)

func ms(d time.Duration) int64 { return d.Milliseconds() }

func testObjects() *Objects {
	return &Objects{Weights: DefaultWeights(), TTLs: TTLs{
		Medium: 2 * time.Hour, Media: time.Hour, Short: 20 * time.Minute, PollGrace: 15 * time.Minute, Max: 24 * time.Hour,
	}}
}

// fixture is the objects of a database, and a clock.
type fixture struct {
	t   *testing.T
	st  *store.Store
	x   *Objects
	now int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, st: storetest.Open(t), x: testObjects(), now: start}
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

func (f *fixture) lookup(q *Query) Result {
	f.t.Helper()
	return storetest.Must(f.x.Lookup(f.t.Context(), f.st.Reader, q))(f.t)
}

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

// stored are all objects in the database, also those that have ended.
func (f *fixture) stored() map[string]Object {
	f.t.Helper()
	all := map[string]Object{}
	for _, jid := range []string{chatA, chatB, newer} {
		for _, o := range storetest.Must(rows.ContextObjectsOf(f.t.Context(), f.st.Reader, jid, 0))(f.t) {
			all[jid+" "+o.ID] = o
		}
	}
	return all
}

func has(r, reason Reasons) bool { return r&reason != 0 }

// poll is an open poll of chat A.
func poll(id int64) Object {
	return Object{ChatJID: chatA, Kind: msg.ContextPoll, ID: msg.ContextObjectID(msg.ContextPoll, id), Label: "Lunch?"}
}
