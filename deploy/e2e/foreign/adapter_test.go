package foreign

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/wake"
)

// open returns an adapter on a new database, and a store on the same.
func open(t *testing.T) (a *Adapter, st *store.Store, database string) {
	t.Helper()
	database = storetest.Path(t)
	return openAt(t, database, t.TempDir()), storetest.OpenAt(t, database, nil), database
}

func openAt(t *testing.T, database, data string) *Adapter {
	t.Helper()
	a, err := Open(database, data, func(daemon string, err error) { t.Errorf("poke %s: %v", daemon, err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func receive(t *testing.T, a *Adapter, rows ...msg.Message) []int64 {
	t.Helper()
	ids, err := a.Receive(t.Context(), rows...)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestReceive_OnlyChat_SetsDefaults(t *testing.T) {
	a, st, _ := open(t)
	before := time.Now().UnixMilli()
	ids := receive(t, a, msg.Message{ChatJID: "matrix:!room"}, msg.Message{ChatJID: "matrix:!room"})
	m, err := st.Message(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if m.ReceivedAt < before || m.Timestamp != m.ReceivedAt || m.PlatformID == "" {
		t.Errorf("row %+v", m)
	}
	want := &msg.Message{
		ID: ids[0], ChatJID: "matrix:!room", Direction: msg.In, Kind: msg.KindMessage, Sender: "matrix:7", SenderName: "bob",
		Verb: msg.VerbMessage, Source: "foreign", PlatformID: m.PlatformID, Timestamp: m.Timestamp, ReceivedAt: m.ReceivedAt,
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if len(ids) != 2 || ids[1] <= ids[0] {
		t.Errorf("row ids %v", ids)
	}
}

func TestReceive_StoresEveryField(t *testing.T) {
	a, st, _ := open(t)
	want := &msg.Message{
		ChatJID: "slack:C1", PlatformID: "1.2", Direction: msg.In, Kind: msg.KindMessage, Sender: "slack:U1", SenderName: "O'Hara",
		IsBot: true, Verb: "reply", Content: "'); DROP TABLE messages; --", Topic: "1.1", ThreadID: "1.1", ReplyToID: "1.1",
		TargetID: "1.0", Addressed: true, PendingFiles: 2, Timestamp: 5, ReceivedAt: 6, Source: "mine",
		ForwardedFrom: &msg.ReturnAddress{Kind: msg.Delegation, ChatJID: "slack:C1"},
	}
	want.ID = receive(t, a, *want)[0]
	got, err := st.Message(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestReceive_Redelivery_KeepsRow(t *testing.T) {
	a, st, database := open(t)
	first := msg.Message{ChatJID: "telegram:5", PlatformID: "1", Content: "first"}
	ids := receive(t, a, first, msg.Message{ChatJID: "telegram:6", PlatformID: "1"})
	again := receive(t, openAt(t, database, t.TempDir()), msg.Message{ChatJID: "telegram:5", PlatformID: "1", Content: "again"}, msg.Message{ChatJID: "telegram:5"})
	if again[0] != ids[0] || ids[1] == ids[0] || again[1] == ids[0] {
		t.Errorf("rows %v, then %v", ids, again)
	}
	if m, err := st.Message(t.Context(), ids[0]); err != nil || m.Content != "first" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestReceive_InvalidRow_StoresNothing(t *testing.T) {
	a, st, _ := open(t)
	if ids, err := a.Receive(t.Context(), msg.Message{ChatJID: "telegram:5"}, msg.Message{ChatJID: "nowhere"}); err == nil {
		t.Errorf("stored as %v", ids)
	}
	if m, err := st.Message(t.Context(), 1); m != nil || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
}

// listener receives pokes.
type listener interface {
	C() <-chan struct{}
	Close() error
}

// listen receives a daemon's pokes: by a socket in the data folder, or by the server.
func listen(t *testing.T, database, data, daemon string) (l listener) {
	t.Helper()
	var err error
	if storetest.Server() != "" {
		if l, err = store.ListenForPokes(database, daemon, func(err error) { t.Error(err) }); err == nil {
			<-l.C() // it has connected
		}
	} else {
		l, err = wake.Listen(filepath.Join(data, "run"), daemon)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestAdapter_PokesReaders(t *testing.T) {
	database, data := storetest.Path(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	poked := map[string]listener{}
	for _, daemon := range []string{gated, routd} {
		poked[daemon] = listen(t, database, data, daemon)
	}
	a, st := openAt(t, database, data), storetest.OpenAt(t, database, nil)
	if _, err := a.Insert(t.Context(), msg.Message{ChatJID: "telegram:5"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Sent(t.Context(), outbound(t, st, "telegram:5"), "9", time.Time{}); err != nil {
		t.Fatal(err)
	}
	<-poked[routd].C()
	select {
	case <-poked[gated].C():
		t.Error("Insert poked gated")
	default:
	}
	receive(t, a, msg.Message{ChatJID: "telegram:5"})
	<-poked[gated].C()
}

// outbound queues a row as gated does.
func outbound(t *testing.T, st *store.Store, chat string) int64 {
	t.Helper()
	id, _, err := storetest.Put(t.Context(), st, &msg.Message{
		ChatJID: chat, Direction: msg.Out, Content: "hello", ThreadID: "77", ReplyToID: "1", Source: msg.SourceAgent,
		OutState: msg.OutQueued, Timestamp: 1, ReceivedAt: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestQueued_ListsPlatformInOrder(t *testing.T) {
	a, st, _ := open(t)
	first, second := outbound(t, st, "telegram:5"), outbound(t, st, "telegram:4")
	outbound(t, st, "discord:5")
	receive(t, a, msg.Message{ChatJID: "telegram:5"})
	queued, err := a.Queued(t.Context(), "telegram")
	if err != nil {
		t.Fatal(err)
	}
	row := Outbound{ThreadID: "77", ReplyToID: "1", Kind: msg.KindMessage, Content: "hello", Source: msg.SourceAgent}
	want := []Outbound{row, row}
	want[0].ID, want[0].ChatJID, want[1].ID, want[1].ChatJID = first, "telegram:5", second, "telegram:4"
	if diff := cmp.Diff(want, queued); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
}

func TestReport_UpdatesRowAndDelivery(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for name, tt := range map[string]struct {
		report func(a *Adapter, id int64) error
		want   store.Delivery
	}{
		"sent": {
			func(a *Adapter, id int64) error { return a.Sent(t.Context(), id, "out-1", at) },
			store.Delivery{State: msg.OutSent, PlatformID: "out-1"},
		},
		"sent without id": {
			func(a *Adapter, id int64) error { return a.Sent(t.Context(), id, "", at) },
			store.Delivery{State: msg.OutSent},
		},
		"failed": {
			func(a *Adapter, id int64) error { return a.Failed(t.Context(), id, "kicked out", at) },
			store.Delivery{State: msg.OutFailed, ErrorClass: msg.Permanent, Error: "kicked out"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, st, _ := open(t)
			id := outbound(t, st, "telegram:5")
			if err := tt.report(a, id); err != nil {
				t.Fatal(err)
			}
			tt.want.MessageID, tt.want.Attempts, tt.want.UpdatedAt = id, 1, at.UnixMilli()
			parts, err := st.Deliveries(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]store.Delivery{tt.want}, parts); diff != "" {
				t.Errorf("deliveries (-want +got):\n%s", diff)
			}
			if m, err := st.Message(t.Context(), id); err != nil || m.OutState != tt.want.State || m.PlatformID != tt.want.PlatformID {
				t.Errorf("row %+v, %v", m, err)
			}
			changes, err := factrows.DeliveryChanges(t.Context(), st.Reader, 0, 10)
			if err != nil || len(changes) != 1 || changes[0].At != at.UnixMilli() {
				t.Errorf("changes %+v, %v", changes, err)
			}
			if err := tt.report(a, id); !errors.Is(err, ErrNotQueued) {
				t.Errorf("a second report: %v", err)
			}
		})
	}
}
