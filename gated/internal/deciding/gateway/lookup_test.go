package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// until handles events until a row is decided, and says how long that took.
func (h *harness) until(m *msg.Message) time.Duration {
	h.t.Helper()
	begun := time.Now()
	for h.row(m.ID).Disposition == "" {
		if time.Since(begun) > 30*time.Second {
			h.t.Fatalf("row %d is not decided:\n%s", m.ID, h.log.String())
		}
		h.clock = h.clock.Add(time.Millisecond)
		if busy := h.g.runOnce(h.t.Context()); h.row(m.ID).Disposition == "" {
			h.g.listen(h.t.Context(), nil, nil, busy)
		}
	}
	return time.Since(begun)
}

func TestPing_SlowRoutd_IsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	release := h.slow()
	asked := h.putMany(1000, func(_ int, m *msg.Message) { m.ChatJID = "telegram:2" })
	h.g.runOnce(t.Context())
	if h.g.routd.out == nil {
		t.Fatal("routd is not asked")
	}
	h.g.routd.out.asked = time.Now().Add(-commandWait)          // it has been chewing for a while
	for _, chat := range []string{"telegram:3", "telegram:2"} { // of the chat that is asked about too
		ping := h.put("/ping", in(chat))
		h.until(ping)
		diff(t, "replies", h.replies(ping), []string{"pong"})
		h.is(asked[0], "") // routd has not answered yet
	}
	release()
	h.until(asked[len(asked)-1])
}

func TestStop_SlowRoutd_EndsTheChatsRows(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	release := h.slow()
	one, other := h.put("one"), h.put("other", in("telegram:2"))
	h.g.runOnce(t.Context())
	two, stop, after := h.put("two"), h.put("/stop"), h.put("after")
	h.until(stop)
	h.is(one, "dropped/stopped ")
	h.is(two, "dropped/stopped ")
	h.is(after, "")
	release()
	h.step()
	h.is(after, "routed/route main")
	h.is(other, "routed/route main")
	diff(t, "turns", h.dispatched(), [][]string{{"other"}, {"after"}})
	diff(t, "stopped", h.agents.stopped, [][]int64{nil})
}

func TestNew_SlowRoutd_KeepsItsPlaceAmongTheRows(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	release := h.slow()
	h.put("before")
	fresh, ping := h.put("/new after"), h.put("/ping")
	h.until(ping)
	h.is(fresh, "")
	release()
	h.step()
	diff(t, "turns", h.dispatched(), [][]string{{"before"}, {"after"}})
}

func TestStatus_RoutdGoesAwayWhileItIsAsked_IsAnswered(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	release := h.slow()
	h.put("before")
	fresh, status, ping := h.put("/new"), h.put("/status"), h.put("/ping")
	h.until(ping)
	h.is(status, "")
	h.routd.down.Store(true)
	release()
	h.until(status)
	h.is(fresh, "")
	if !strings.Contains(h.log.String(), "routd is not answering") {
		t.Errorf("log:\n%s", h.log.String())
	}
}

func TestLookup_OutOneAtATime_OtherRowsGather(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	release := h.slow()
	h.put("first")
	h.g.runOnce(t.Context())
	for chat := range 20 {
		h.put("later", in(fmt.Sprintf("telegram:%d", 100+chat)))
		h.g.runOnce(t.Context())
	}
	release()
	h.step()
	if n := h.routd.requests(); n != 2 {
		t.Errorf("%d lookups, want 2", n)
	}
	if n := len(h.dispatched()); n != 21 {
		t.Errorf("%d turns, want 21", n)
	}
}

// A routd that needs 2 ms a row cannot answer about 300 rows within 200 ms.
func TestLookup_RoutdTooSlowForIt_IsHalvedUntilItFits(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.routd.delay(2 * time.Millisecond)
	h.g.routd.timeout = 200 * time.Millisecond
	rows := h.putMany(300, func(int, *msg.Message) {})
	h.until(rows[len(rows)-1])
	for _, m := range rows {
		h.is(m, "routed/route main")
	}
	if limit := h.g.routd.limit; limit >= 300 {
		t.Errorf("the next lookup may have %d rows", limit)
	}
	h.routd.delay(0)
	h.g.routd.timeout = time.Minute
	for range 10 {
		h.putMany(200, func(int, *msg.Message) {})
		h.step()
	}
	if limit := h.g.routd.limit; limit < 200 {
		t.Errorf("the size does not grow again: %d", limit)
	}
}

func TestLookup_OneRowTimesOutAlone_OthersGoOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.g.routd.patience = commandWait
	answers := h.routd.Config.Handler
	h.g.routd.client.Base = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if slices.ContainsFunc(readItems(r), func(it routeapi.Item) bool { return it.Sender == "telegram:odd" }) {
			httpx.Error(w, apierr.New(apierr.Unavailable, "it took too long")) // as routd says when its own time is over
			return
		}
		answers.ServeHTTP(w, r)
	}).Base
	odd := h.put("odd", from("telegram:odd"))
	behind := h.put("behind it")
	var others []*msg.Message
	for chat := range 10 {
		others = append(others, h.put("hi", in(fmt.Sprintf("telegram:%d", 100+chat))))
	}
	for _, m := range others {
		h.until(m)
		h.is(m, "routed/route main")
	}
	h.is(odd, "")
	h.is(behind, "")
	h.until(h.put("/ping"))
}

func TestChange_OfARowThatIsAskedAbout_IsSeen(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	release := h.slow()
	m, gone := h.put("hi"), h.put("oops")
	h.g.runOnce(t.Context())
	edit, deletion := h.put("hello", verb(msg.VerbEdit), on(m)), h.put("", verb(msg.VerbDelete), on(gone))
	h.until(edit)
	h.until(deletion)
	release()
	h.step()
	h.is(gone, "dropped/deleted ")
	diff(t, "turns", h.dispatched(), [][]string{{"hello"}})
}
