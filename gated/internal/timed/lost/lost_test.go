package lost

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// fixture is a database in which rows are not delivered, at a time that passes by hand.
type fixture struct {
	t       *testing.T
	st      *store.Store
	now     time.Time
	notices *Notices
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, st: storetest.Open(t), now: time.UnixMilli(1_800_000_000_000)}
	f.notices = &Notices{Store: f.st, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return f.now }}
	f.connect("telegram", "connected")
	return f
}

func (f *fixture) write(fn func(*store.Tx) error) {
	f.t.Helper()
	if err := f.st.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) connect(platform, as string) {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		return daemonrows.Heartbeat(tx, daemonrows.Daemon{Name: msg.DaemonOf(platform + ":1"), Version: "v1", StartedAt: 1, HeartbeatAt: 1, Connection: as})
	})
}

// fails queues a row and lets the parts of it end in these states, the failed one as a class.
func (f *fixture) fails(m msg.Message, class msg.ErrorClass, states ...msg.OutState) int64 {
	f.t.Helper()
	m.Direction, m.OutState, m.ReceivedAt = msg.Out, msg.OutQueued, f.now.UnixMilli()
	f.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(&m); err != nil {
			return err
		}
		if err := tx.ClaimOutbound(m.ID, len(states), f.now.UnixMilli()); err != nil {
			return err
		}
		end := states[len(states)-1]
		for part, state := range states {
			d := store.Delivery{MessageID: m.ID, Part: part, State: state}
			if state == end {
				d.ErrorClass, d.Error = class, "no reason"
			}
			if err := tx.PutDelivery(d, f.now.UnixMilli()); err != nil {
				return err
			}
		}
		return tx.SettleOutbound(m.ID, end, "")
	})
	return m.ID
}

// noticed lists, after some steps, the notices as "chat/thread of row".
func (f *fixture) noticed() (all []string) {
	f.t.Helper()
	for range 2 { // the second one changes nothing
		if err := f.notices.Step(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
	rows := storetest.Must(rows.LostRows(f.t.Context(), f.st.Reader, 0, "", 100))(f.t)
	for _, l := range rows {
		if l.NoticeID == 0 {
			continue
		}
		n, err := f.st.Message(f.t.Context(), l.NoticeID)
		if err != nil || n.Source != msg.SourceNotice || n.DerivedFrom != l.ID || n.OutState != msg.OutQueued || !strings.Contains(n.Content, fmt.Sprint("message ", l.ID)) {
			f.t.Errorf("notice %+v, %v", n, err)
		}
		all = append(all, fmt.Sprintf("%s/%s of %d", n.ChatJID, n.ThreadID, l.ID))
	}
	slices.Sort(all)
	return all
}

func (f *fixture) expect(want ...string) {
	f.t.Helper()
	if got := f.noticed(); !slices.Equal(got, want) {
		f.t.Errorf("noticed %q, want %q", got, want)
	}
}

const failed, sent, ambiguous = msg.OutFailed, msg.OutSent, msg.OutAmbiguous

func answer(chat string) msg.Message {
	return msg.Message{ChatJID: chat, Source: msg.SourceAgent, Content: "the answer"}
}

func TestNotices_FailedAnswers_TellEachChatOnceAnHour(t *testing.T) {
	f := newFixture(t)
	inThread := answer("telegram:-1")
	inThread.ThreadID = "7"
	first := f.fails(inThread, msg.Permanent, sent, failed)
	other := f.fails(answer("telegram:-2"), msg.Transient, failed)
	want := []string{fmt.Sprintf("telegram:-1/7 of %d", first), fmt.Sprintf("telegram:-2/ of %d", other)}
	f.expect(want...)
	f.now = f.now.Add(perChat / 2)
	f.fails(answer("telegram:-1"), msg.Permanent, failed)
	f.expect(want...)
	f.now = f.now.Add(perChat)
	f.expect(want...) // nor later
	third := f.fails(answer("telegram:-1"), msg.Permanent, failed)
	f.expect(fmt.Sprintf("telegram:-1/ of %d", third), want[0], want[1])
}

func TestNotices_OfWhatNoUserMisses_AreNotMade(t *testing.T) {
	f := newFixture(t)
	notice, reaction := answer("telegram:-1"), answer("telegram:-2")
	notice.Source, reaction.Kind = msg.SourceNotice, msg.KindReaction
	f.fails(notice, msg.Permanent, failed)
	f.fails(reaction, msg.Permanent, failed)
	f.fails(answer("telegram:-3"), msg.Ambiguous, ambiguous)
	resent := f.fails(answer("telegram:-4"), msg.Permanent, failed)
	f.write(func(tx *store.Tx) error {
		again := answer("telegram:-4")
		again.Direction, again.OutState, again.DerivedFrom = msg.Out, msg.OutQueued, resent
		_, _, err := tx.PutMessage(&again)
		return err
	})
	f.fails(answer("telegram:-5"), msg.Permanent, failed)
	f.now = f.now.Add(window + time.Second) // too long ago
	f.expect()
}

func TestNotices_ExpiredAnswers_WaitForTheirAdapter(t *testing.T) {
	f := newFixture(t)
	f.connect("telegram", "degraded")
	expired := f.fails(answer("telegram:-1"), msg.Expired, failed)
	f.expect()
	f.now = f.now.Add(3 * time.Hour)
	f.connect("telegram", "connected")
	f.expect(fmt.Sprintf("telegram:-1/ of %d", expired))
}

func TestText_SaysWhatIsMissingAndWhy(t *testing.T) {
	for _, tt := range []struct {
		lost rows.Lost
		want string
	}{
		{rows.Lost{ID: 7, Class: msg.Permanent}, "A message of mine could not be delivered here: the platform refused it."},
		{rows.Lost{ID: 7, Class: msg.Expired, Sent: 1}, "The rest of a message of mine could not be delivered here: the platform was out of reach for too long."},
		{rows.Lost{ID: 7, Class: msg.Ambiguous}, "the platform did not say whether it arrived."},
		{rows.Lost{ID: 7, Class: msg.Transient}, "the platform kept failing."},
	} {
		if got := text(&tt.lost); !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestLostRows_ListsWhatOperatorsNeed(t *testing.T) {
	f := newFixture(t)
	id := f.fails(answer("telegram:-1"), msg.Permanent, sent, failed)
	f.fails(answer("telegram:-2"), msg.Ambiguous, ambiguous)
	list, err := rows.LostRows(t.Context(), f.st.Reader, 0, "telegram:-1", 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if l := list[0]; l.ID != id || l.State != failed || l.Class != msg.Permanent || l.Error != "no reason" || l.Parts != 2 || l.Sent != 1 ||
		l.Content != "the answer" || l.EndedAt != f.now.UnixMilli() {
		t.Errorf("%+v", l)
	}
	if list, err = rows.LostRows(t.Context(), f.st.Reader, 0, "", 10); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err = rows.LostRows(t.Context(), f.st.Reader, f.now.UnixMilli()+1, "", 10); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
