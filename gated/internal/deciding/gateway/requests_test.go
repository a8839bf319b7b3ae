package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// TestAskRequest_RowDecided_SaysNothingOfOnbod: onbod was not called, and still counts as down.
func TestAskRequest_RowDecided_SaysNothingOfOnbod(t *testing.T) {
	t.Parallel()
	h, o := withOnbod(t)
	one := h.put("one")
	h.write(func(tx *store.Tx) error {
		return tx.Decide(one.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped}, 1)
	})
	h.g.requests.failures, h.g.requests.running = 3, 1
	h.g.requests.chats[dm] = true
	h.g.requests.finish(h.g.requests.ask(t.Context(), requestCall{dm, one.ID}))
	if r := h.g.requests; r.failures != 3 || len(r.chats) != 0 || len(o.calls()) != 0 || strings.Contains(h.log.String(), "again") {
		t.Errorf("%+v, %d calls, log %s", r, len(o.calls()), h.log.String())
	}
}

// TestAskRequest_RowUnreadable_IsRepeated: the log blames the database, not onbod.
func TestAskRequest_RowUnreadable_IsRepeated(t *testing.T) {
	t.Parallel()
	h, o := withOnbod(t)
	one := h.put("one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.g.requests.running = 1
	h.g.requests.chats[dm] = true
	d := h.g.requests.ask(ctx, requestCall{dm, one.ID})
	if d.failed == nil || d.down != nil {
		t.Fatalf("%+v", d)
	}
	h.g.requests.finish(d)
	if log := h.log.String(); !strings.Contains(log, "message cannot be read") || strings.Contains(log, "onbod opened no request") {
		t.Error(log)
	}
	h.clock = h.clock.Add(minRequestDelay)
	h.step()
	h.parked(one)
	if n := len(o.calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestAskRequest_ApprovedLately_NoWarning: onbod has no pending request then, and says so.
func TestAskRequest_ApprovedLately_NoWarning(t *testing.T) {
	t.Parallel()
	h, o := withOnbod(t)
	o.set("approved")
	one := h.put("one")
	d := h.g.requests.ask(t.Context(), requestCall{dm, one.ID})
	if d.down != nil || d.failed != nil || d.answer.State != 0 || h.log.String() != "" {
		t.Errorf("%+v, log %s", d, h.log.String())
	}
}

// TestApprove_OnbodAnswersAgain_IsCalledAtOnce: a command that failed keeps no later one from onbod.
func TestApprove_OnbodAnswersAgain_IsCalledAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var down atomic.Bool
	down.Store(true)
	h.onbod = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		httpx.JSON(w, http.StatusOK, map[string]string{"text": "Connected."})
	}).Base
	h.restart()
	h.g.cfg.Operators = map[string]bool{"telegram:7": true}
	for _, want := range []string{"Requests cannot be approved or rejected: their service (onbod) is not answering.", "Connected."} {
		m := h.take("/approve ABCD-1234 fam")
		h.finishCalls()
		h.expect(strings.Join(h.replies(m), "\n"), want)
		down.Store(false)
	}
}

// TestReadParked_DatabaseFails_WaitsBeforeTheNextRead: else gated reads without a pause.
func TestReadParked_DatabaseFails_WaitsBeforeTheNextRead(t *testing.T) {
	t.Parallel()
	h, _ := withOnbod(t)
	h.parked(h.take("one"))
	h.g.outside.poked, h.g.outside.lookAt = true, time.Time{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.g.outside.look(ctx, false); !errors.Is(err, context.Canceled) {
		t.Fatalf("read: %v", err)
	}
	if d := h.g.outside.until(); !h.g.outside.poked || d <= 0 || d > lookEvery {
		t.Errorf("unread %t, read again after %s", h.g.outside.poked, d)
	}
}
