package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// TestAskRequest_RowDecided_SaysNothingOfOnbod: onbod was not called, and still counts as down.
func TestAskRequest_RowDecided_SaysNothingOfOnbod(t *testing.T) {
	h, o := parallelOnbod(t)
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
	h, o := parallelOnbod(t)
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
	h, o := parallelOnbod(t)
	o.set("approved")
	one := h.put("one")
	d := h.g.requests.ask(t.Context(), requestCall{dm, one.ID})
	if d.down != nil || d.failed != nil || d.answer.State != 0 || h.log.String() != "" {
		t.Errorf("%+v, log %s", d, h.log.String())
	}
}

// TestApprove_OnbodAnswersAgain_IsCalledAtOnce: a command that failed keeps no later one from onbod.
func TestApprove_OnbodAnswersAgain_IsCalledAtOnce(t *testing.T) {
	h := parallel(t)
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
	h, _ := parallelOnbod(t)
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

// fakeOnbod opens requests as onbod does, in the same database.
type fakeOnbod struct {
	*httptest.Server
	st *store.Store

	mu      sync.Mutex
	answer  string // instead of opening one: rejected, limited, or the kind of an error
	asked   []onboardapi.Ask
	current int // calls that are not answered yet
	most    int
	hang    chan struct{} // calls are answered once it is closed; nil: at once
}

// withOnbod gives the harness an onbod, and a routd that has no route.
func withOnbod(t *testing.T) (*harness, *fakeOnbod) {
	h := newHarness(t)
	h.routd.route(unrouted)
	o := &fakeOnbod{st: h.st}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	h.onbod = o.URL
	h.restart()
	return h, o
}

// parallelOnbod is withOnbod for a test that runs beside others.
func parallelOnbod(t *testing.T) (*harness, *fakeOnbod) {
	t.Parallel()
	return withOnbod(t)
}

// set changes how calls are answered from here on.
func (o *fakeOnbod) set(answer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

func (o *fakeOnbod) calls() []onboardapi.Ask {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

func (o *fakeOnbod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body onboardapi.Ask
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/requests" {
		httpx.Error(w, apierr.New(apierr.NotFound, "%s %v", r.URL.Path, err))
		return
	}
	o.mu.Lock()
	o.asked = append(o.asked, body)
	o.current++
	o.most = max(o.most, o.current)
	answer, hang, code := o.answer, o.hang, fmt.Sprintf("ABCD-%04d", len(o.asked))
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.current--
	}()
	if hang != nil {
		<-hang
	}
	switch answer {
	case "":
		httpx.JSON(w, http.StatusOK, o.open(r.Context(), &body, code))
	case "rejected", "limited":
		httpx.JSON(w, http.StatusOK, onboardapi.Asked{State: factrows.RequestState(answer)})
	case "approved":
		httpx.JSON(w, http.StatusOK, onboardapi.Asked{State: factrows.RequestState(answer)})
	case "nginx":
		http.Error(w, "nginx", http.StatusMethodNotAllowed)
	case "tls":
		http.Error(w, "Client sent an HTTP request to an HTTPS server.", http.StatusBadRequest)
	default:
		httpx.Error(w, apierr.New(apierr.Kind(answer), "no"))
	}
}

func (o *fakeOnbod) open(ctx context.Context, body *onboardapi.Ask, code string) onboardapi.Asked {
	if r, err := factrows.PendingRequest(ctx, o.st.Reader, body.ChatJID); err == nil && r != nil {
		return onboardapi.Asked{Code: r.Code, State: "pending"}
	}
	err := o.st.Write(ctx, func(tx *store.Tx) error {
		return storetest.PutRequest(tx, &factrows.Request{Code: code, ChatJID: body.ChatJID, Kind: body.Kind, Sender: body.Sender, CreatedAt: 1})
	})
	if err != nil {
		return onboardapi.Asked{State: "limited"}
	}
	return onboardapi.Asked{Code: code, Created: true, State: "pending"}
}
