package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPutMessage_Redelivered_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := msg.Message{ChatJID: "telegram:1", PlatformID: "7", Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 2}
	id := storetest.Stored(t, s, &first).ID
	storetest.Decide(t, s, id, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	before := storetest.Must(s.Message(t.Context(), id))(t)

	again := msg.Message{ChatJID: "telegram:1", PlatformID: "7", Direction: msg.In, Content: "changed"}
	if got, fresh, err := storetest.Put(t.Context(), s, &again); got != id || again.ID != id || fresh || err != nil {
		t.Errorf("again: %d %v %v", got, fresh, err)
	}
	if diff := cmp.Diff(before, storetest.Must(s.Message(t.Context(), id))(t)); diff != "" {
		t.Errorf("a redelivery changed the row (-want +got):\n%s", diff)
	}
	for _, other := range []msg.Message{
		{ChatJID: "telegram:2", PlatformID: "7", Direction: msg.In},
		{ChatJID: "telegram:1", PlatformID: "8", Direction: msg.In},
		{ChatJID: "telegram:1", Direction: msg.In}, {ChatJID: "telegram:1", Direction: msg.In},
	} {
		if storetest.Stored(t, s, &other).ID == id {
			t.Errorf("%+v counts as the same", other)
		}
	}
}

func TestMessageByPlatformID(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, PlatformID: "1", Direction: msg.In})
	out := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, OutState: msg.OutSent})
	elsewhere := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:-2", Direction: msg.Out, OutState: msg.OutSent})
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO deliveries (message_id, part, seq, state, platform_id, updated_at) VALUES
			(?1, 0, 1, 'sent', '20', 1), (?1, 1, 2, 'sent', '21', 1), (?2, 0, 3, 'sent', '30', 1), (?2, 1, 4, 'sent', '21', 1)`,
			out.ID, elsewhere.ID)
	})
	for _, tt := range []struct {
		chat, id string
		want     int64
	}{
		{storetest.Chat, "1", in.ID}, {storetest.Chat, "20", out.ID}, {storetest.Chat, "21", out.ID}, {"telegram:-2", "21", elsewhere.ID},
		{storetest.Chat, "30", 0}, {storetest.Chat, "", 0}, {"telegram:-2", "1", 0},
	} {
		m := storetest.Must(s.MessageByPlatformID(t.Context(), tt.chat, tt.id))(t)
		if m == nil && tt.want != 0 || m != nil && m.ID != tt.want {
			t.Errorf("%s in %s: %+v, want row %d", tt.id, tt.chat, m, tt.want)
		}
	}
	if m, err := s.Message(t.Context(), 4711); m != nil || err != nil {
		t.Errorf("no such row: %+v, %v", m, err)
	}
}

func TestDerivedFrom(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	original := storetest.Inbound(t, s, storetest.Chat, "@eng hi").ID
	a := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, DerivedFrom: original}).ID
	b := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, DerivedFrom: original}).ID
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, DerivedFrom: a})
	rows := storetest.Must(s.DerivedFrom(t.Context(), original))(t)
	if len(rows) != 2 || rows[0].ID != a || rows[1].ID != b {
		t.Errorf("%d rows", len(rows))
	}
}

func TestPutMessage_GroupKeyQuoteAndError_AreKept(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, GroupKey: "album:7", Quote: "this part"})
	storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonBadRow, Error: "panic: no"})
	got := storetest.Must(s.Message(t.Context(), m.ID))(t)
	if got.GroupKey != "album:7" || got.Quote != "this part" || got.Error != "panic: no" || got.FilesWanted {
		t.Errorf("row %+v", got)
	}
}
