package polls

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// harness is a closer with a clock of its own.
type harness struct {
	*testing.T
	st    *store.Store
	clock time.Time
	c     *Closer
}

func newHarness(t *testing.T) *harness {
	h := &harness{T: t, st: storetest.Open(t), clock: time.UnixMilli(1_000_000)}
	h.restart()
	return h
}

func (h *harness) restart() {
	h.c = &Closer{
		Store: h.st, Now: func() time.Time { return h.clock }, Log: slog.New(slog.DiscardHandler),
		Objects: &contextobjects.Objects{Weights: contextobjects.DefaultWeights()},
	}
}

func (h *harness) write(fn func(*store.Tx) error) {
	h.Helper()
	if err := h.st.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// step runs a step and returns the poll and the number of rows that close its message.
func (h *harness) step(p *msg.StoredPoll) (now *msg.StoredPoll, closings int) {
	h.Helper()
	if err := h.c.Step(h.Context()); err != nil {
		h.Fatal(err)
	}
	now, err := rows.Poll(h.Context(), h.st.Reader, p.ID)
	if err != nil {
		h.Fatal(err)
	}
	last, err := h.st.LastMessageID(h.Context())
	for id := p.MessageID + 1; err == nil && id <= last; id++ {
		var m *msg.Message
		if m, err = h.st.Message(h.Context(), id); m != nil && m.Direction == msg.Out {
			closings++
		}
	}
	if err != nil {
		h.Fatal(err)
	}
	return now, closings
}

func (h *harness) poll(closesAt time.Time, state msg.OutState) *msg.StoredPoll {
	h.Helper()
	p := &msg.StoredPoll{Folder: "main", ChatJID: "slack:C1", CreatedAt: h.clock.UnixMilli(), Poll: msg.Poll{Question: "Lunch?", Options: []string{"a", "b"}}}
	if !closesAt.IsZero() {
		p.Poll.ClosesAt = closesAt.UnixMilli()
	}
	h.write(func(tx *store.Tx) error {
		m := &msg.Message{ChatJID: p.ChatJID, Direction: msg.Out, Kind: msg.KindPoll, Content: p.Poll.JSON(), OutState: msg.OutQueued}
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		p.MessageID = m.ID
		return rows.PutPoll(tx, p)
	})
	h.write(func(tx *store.Tx) error { return tx.ClaimOutbound(p.MessageID, 1, 1) })
	if state != msg.OutSending {
		h.settle(p, state)
	}
	return p
}

func (h *harness) settle(p *msg.StoredPoll, state msg.OutState) {
	h.Helper()
	h.write(func(tx *store.Tx) error { return tx.SettleOutbound(p.MessageID, state, "9.1") })
}

func TestCloser_TimeHasCome_ClosesOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	closes := h.clock.Add(time.Hour)
	p := h.poll(closes, msg.OutSent)
	if got, n := h.step(p); got.State != msg.PollOpen || n != 0 {
		t.Errorf("before its time: %+v, %d closings", got, n)
	}
	h.clock = closes.Add(30 * time.Minute) // gated was down
	for range 3 {
		h.restart()
		got, n := h.step(p)
		if got.State != msg.PollClosed || got.ClosedAt != closes.UnixMilli() || got.EndPending || n != 1 {
			t.Errorf("%+v, %d closings", got, n)
		}
	}
}

func TestCloser_ClockJumpsBack_StaysClosed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.poll(h.clock.Add(time.Hour), msg.OutSent)
	h.clock = h.clock.Add(2 * time.Hour)
	h.step(p)
	h.clock = h.clock.Add(-24 * time.Hour)
	if got, n := h.step(p); got.State != msg.PollClosed || n != 1 {
		t.Errorf("%+v, %d closings", got, n)
	}
}

func TestCloser_MessageNotDelivered_Waits(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.poll(time.Time{}, msg.OutSending)
	h.write(func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, h.clock.UnixMilli()) })
	if got, n := h.step(p); !got.EndPending || n != 0 {
		t.Errorf("while it is sent: %+v, %d closings", got, n)
	}
	h.settle(p, msg.OutSent)
	if got, n := h.step(p); got.EndPending || n != 1 {
		t.Errorf("once it is sent: %+v, %d closings", got, n)
	}
}

func TestCloser_NeverDelivered_ClosesRowsOnly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.poll(time.Time{}, msg.OutSending)
	h.write(func(tx *store.Tx) error { return tx.SettleOutbound(p.MessageID, msg.OutFailed, "") })
	if got, n := h.step(p); got.State != msg.PollClosed || got.EndPending || n != 0 {
		t.Errorf("%+v, %d closings", got, n)
	}
}

func TestCloser_VotesBeforeTheEnd_AreWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.poll(time.Time{}, msg.OutSent)
	h.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(&msg.Message{ChatJID: p.ChatJID, Direction: msg.In, Verb: msg.VerbVote, ReceivedAt: h.clock.UnixMilli()})
		return err
	})
	h.write(func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, h.clock.UnixMilli()) })
	if got, n := h.step(p); !got.EndPending || n != 0 {
		t.Errorf("while a vote is undecided: %+v, %d closings", got, n)
	}
	h.clock = h.clock.Add(maxVotesDelay)
	if got, n := h.step(p); got.EndPending || n != 1 {
		t.Errorf("after %s: %+v, %d closings", maxVotesDelay, got, n)
	}
}

func TestAPI_Close_ClosesOnce(t *testing.T) {
	h := newHarness(t)
	p := h.poll(time.Time{}, msg.OutSent)
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	h.c.Mount(router)
	for _, tt := range []struct {
		id     string
		status int
		words  string
	}{
		{"99", 404, "there is no poll 99"}, {"x", 400, "is not an id"}, {"0", 400, "is not an id"},
		{fmt.Sprint(p.ID), 200, "closed"}, {fmt.Sprint(p.ID), 409, "is closed already"},
	} {
		rec := httptest.NewRecorder()
		router.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v1/polls/"+tt.id+"/close", nil))
		if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.words) {
			t.Errorf("%s: %d %s", tt.id, rec.Code, rec.Body)
		}
	}
	now, closings := h.step(p)
	if now.State != msg.PollClosed || now.ClosedAt != h.clock.UnixMilli() || closings != 1 {
		t.Errorf("the poll is %s at %d, and %d rows close its message", now.State, now.ClosedAt, closings)
	}
}
