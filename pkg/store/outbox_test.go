package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// outbound stores an outbound row in a state, "" for none.
func outbound(t testing.TB, s *store.Store, chatJID, thread string, state msg.OutState) *msg.Message {
	t.Helper()
	return storetest.Stored(t, s, &msg.Message{ChatJID: chatJID, ThreadID: thread, Direction: msg.Out, OutState: state, Content: "hi"})
}

// outStates are all states that an outbound row may have.
var outStates = []msg.OutState{"", msg.OutQueued, msg.OutSending, msg.OutSent, msg.OutAmbiguous, msg.OutFailed, msg.OutCancelled}

func TestClaimOutbound(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 20)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	for parts, want := range map[int][]msg.OutState{
		0: {msg.OutSending}, 1: {msg.OutSending}, 3: {msg.OutSending, msg.OutQueued, msg.OutQueued},
	} {
		m := outbound(t, s, "irc:1", "", msg.OutQueued)
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(m.ID, parts, 5) })
		var expected []store.Delivery
		for part, state := range want {
			expected = append(expected, store.Delivery{MessageID: m.ID, Part: part, State: state, UpdatedAt: 5})
		}
		if diff := cmp.Diff(expected, storetest.Must(s.Deliveries(t.Context(), m.ID))(t)); diff != "" {
			t.Errorf("%d parts (-want +got):\n%s", parts, diff)
		}
		if got := storetest.Must(s.Message(t.Context(), m.ID))(t).OutState; got != msg.OutSending {
			t.Errorf("claimed row is %s", got)
		}
		if got := storetest.Receive(t, "a poke", pokes); got != "routd" {
			t.Errorf("poked %s", got)
		}
	}
}

func TestClaimAndSettle_OtherStates_ReturnErrStale(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	claim := func(id int64) func(*store.Tx) error {
		return func(tx *store.Tx) error { return tx.ClaimOutbound(id, 2, 1) }
	}
	settle := func(id int64) func(*store.Tx) error {
		return func(tx *store.Tx) error { return tx.SettleOutbound(id, msg.OutSent, "id") }
	}
	for _, state := range outStates {
		m := outbound(t, s, storetest.Chat, "", state)
		if state != msg.OutQueued {
			refused(t, s, "claim a row that is "+string(state), claim(m.ID))
		}
		if state != msg.OutSending {
			refused(t, s, "settle a row that is "+string(state), settle(m.ID))
		}
		if diff := cmp.Diff(m, storetest.Must(s.Message(t.Context(), m.ID))(t)); diff != "" {
			t.Errorf("changed (-before +after):\n%s", diff)
		}
	}
	in := storetest.Inbound(t, s, storetest.Chat, "in").ID
	for _, id := range []int64{in, noID} {
		refused(t, s, "claim", claim(id))
		refused(t, s, "settle", settle(id))
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM deliveries`); n != 0 {
		t.Errorf("%d deliveries", n)
	}
}

func TestSettleOutbound(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, PlatformID: "7", Direction: msg.In})
	for _, tt := range []struct {
		chat       string
		state      msg.OutState
		id, wantID string
	}{
		{storetest.Chat, msg.OutSent, "1", "1"},
		{storetest.Chat, msg.OutAmbiguous, "", ""},
		{storetest.Chat, msg.OutFailed, "2", "2"},
		{storetest.Chat, msg.OutSent, "7", ""}, // an inbound row's
		{storetest.Chat, msg.OutSent, "1", ""}, // the first one's
		{"telegram:-2", msg.OutSent, "1", "1"},
	} {
		m := outbound(t, s, tt.chat, "", msg.OutSending)
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(m.ID, tt.state, tt.id) })
		if got := storetest.Must(s.Message(t.Context(), m.ID))(t); got.OutState != tt.state || got.PlatformID != tt.wantID {
			t.Errorf("%+v: the row is %s with the id %q", tt, got.OutState, got.PlatformID)
		}
	}
}

func TestPutDelivery(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := outbound(t, s, storetest.Chat, "", msg.OutSending)
	want := store.Delivery{MessageID: m.ID, Part: 1, State: msg.OutQueued, Attempts: 2, NotBefore: 99, PlatformID: "p",
		ErrorClass: msg.Rate, Error: "slow down\uFFFD", UpdatedAt: 9}
	if got := storetest.Must(s.Deliveries(t.Context(), m.ID))(t); got != nil {
		t.Errorf("before it is claimed: %+v", got)
	}
	unclean := want
	unclean.Error = "slow\x00 down\xff"
	for _, d := range []store.Delivery{want, {MessageID: m.ID, Part: 1, State: msg.OutSent}, {MessageID: m.ID, State: msg.OutSent}, unclean} {
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutDelivery(d, 9) })
	}
	if diff := cmp.Diff([]store.Delivery{{MessageID: m.ID, State: msg.OutSent, UpdatedAt: 9}, want}, storetest.Must(s.Deliveries(t.Context(), m.ID))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM deliveries WHERE platform_id IS NULL AND error_class IS NULL AND error IS NULL`); n != 1 {
		t.Errorf("%d parts without an error", n)
	}
}

// TestDeliveries_EachChange_GetsTheHighestSeq changes parts in any order.
func TestDeliveries_EachChange_GetsTheHighestSeq(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first, second := outbound(t, s, storetest.Chat, "", msg.OutQueued), outbound(t, s, storetest.Chat, "7", msg.OutQueued)
	last := int64(0)
	for i, change := range []struct {
		row   *msg.Message
		part  int
		write func(*store.Tx) error
	}{
		{first, 1, func(tx *store.Tx) error { return tx.ClaimOutbound(first.ID, 2, 1) }},
		{second, 0, func(tx *store.Tx) error { return tx.ClaimOutbound(second.ID, 1, 1) }},
		{first, 0, func(tx *store.Tx) error {
			return tx.PutDelivery(store.Delivery{MessageID: first.ID, State: msg.OutSent}, 1)
		}},
		{first, 0, func(tx *store.Tx) error { // again and the same
			return tx.PutDelivery(store.Delivery{MessageID: first.ID, State: msg.OutSent}, 1)
		}},
		{second, 0, func(tx *store.Tx) error { // by a foreign adapter
			return tx.Exec(`UPDATE deliveries SET state = 'sent' WHERE message_id = ?`, second.ID)
		}},
		{second, 1, func(tx *store.Tx) error {
			return tx.Exec(`INSERT INTO deliveries (message_id, part, state) VALUES (?, 1, 'sent')`, second.ID)
		}},
	} {
		storetest.Write(t, s, change.write)
		top := storetest.Value[int64](t, s, `SELECT max(seq) FROM deliveries`)
		if seq := storetest.Value[int64](t, s, `SELECT seq FROM deliveries WHERE message_id = ? AND part = ?`, change.row.ID, change.part); seq != top || seq <= last {
			t.Errorf("change %d has seq %d; the highest is %d, before it %d", i, seq, top, last)
		}
		last = top
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) - count(DISTINCT seq) FROM deliveries`); n != 0 {
		t.Errorf("%d seqs are used twice", n)
	}
}

func TestDaemonCursors(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	put := func(daemon, key, value string) {
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutCursor(daemon, key, value) })
	}
	put("teled", "offset", "1")
	put("teled", "offset", "2")
	put("discd", "offset", "9")
	put("dashd", "revoked:a", "10")
	put("dashd", "revoked:b", "")
	put("dashd", "revoked", "no prefix")
	put("dashd", "REVOKED:c", "another key")
	for _, tt := range []struct{ daemon, key, want string }{
		{"teled", "offset", "2"}, {"discd", "offset", "9"}, {"slakd", "offset", ""}, {"teled", "off", ""},
	} {
		if got := storetest.Must(s.DaemonCursor(t.Context(), tt.daemon, tt.key))(t); got != tt.want {
			t.Errorf("%s of %s is %q, want %q", tt.key, tt.daemon, got, tt.want)
		}
	}
	for prefix, want := range map[string]map[string]string{
		"revoked:": {"revoked:a": "10", "revoked:b": ""},
		"":         {"revoked:a": "10", "revoked:b": "", "revoked": "no prefix", "REVOKED:c": "another key"},
		"%":        {},
	} {
		if diff := cmp.Diff(want, storetest.Must(s.DaemonCursors(t.Context(), "dashd", prefix))(t)); diff != "" {
			t.Errorf("with the prefix %q (-want +got):\n%s", prefix, diff)
		}
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.DeleteCursor("dashd", "revoked:a") })
	if diff := cmp.Diff(map[string]string{"revoked:b": ""}, storetest.Must(s.DaemonCursors(t.Context(), "dashd", "revoked:"))(t)); diff != "" {
		t.Errorf("after one was deleted (-want +got):\n%s", diff)
	}
}
