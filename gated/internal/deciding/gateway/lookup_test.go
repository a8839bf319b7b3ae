package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"arizuko/gated/internal/deciding/decide"
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
	h := parallel(t)
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
	h := parallel(t)
	release := h.slow()
	one, other := h.put("one"), h.put("other", in("telegram:2"))
	h.g.runOnce(t.Context())
	two, stop, after := h.put("two"), h.put("/stop"), h.put("after")
	h.until(stop)
	h.are("dropped/stopped ", one, two)
	h.is(after, "")
	release()
	h.step()
	h.are("routed/route main", after, other)
	diff(t, "turns", h.dispatched(), [][]string{{"other"}, {"after"}})
	diff(t, "stopped", h.agents.stopped, [][]int64{nil})
}

func TestNew_SlowRoutd_KeepsItsPlaceAmongTheRows(t *testing.T) {
	h := parallel(t)
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
	h := parallel(t)
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
	h := parallel(t)
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
	h := parallel(t)
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
	h := parallel(t)
	h.g.routd.patience = commandWait
	answers := h.routd.Config.Handler
	h.g.routd.routd = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if slices.ContainsFunc(readItems(r), func(it routeapi.Item) bool { return it.Sender == "telegram:odd" }) {
			httpx.Error(w, apierr.New(apierr.Unavailable, "it took too long")) // as routd says when its own time is over
			return
		}
		answers.ServeHTTP(w, r)
	}).Talk(routeapi.Path)
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
	h.are("", odd, behind)
	h.until(h.put("/ping"))
}

func TestChange_OfARowThatIsAskedAbout_IsSeen(t *testing.T) {
	h := parallel(t)
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

// TestCutChats_AnyItems: a request is never empty nor above the limit, and ends
// between two chats wherever one of them ends within the limit.
func TestCutChats_AnyItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 8), 1, 8).Draw(t, "rows of each chat")
		limit := rapid.IntRange(1, 10).Draw(t, "limit")
		var items []routeapi.Item
		for chat, size := range sizes {
			for range size {
				items = append(items, routeapi.Item{ChatJID: fmt.Sprintf("telegram:%d", chat)})
			}
		}
		n := cutChats(items, limit)
		if n < 1 || n > min(limit, len(items)) {
			t.Fatalf("%d of %d items, at most %d", n, len(items), limit)
		}
		if splits := n < len(items) && items[n-1].ChatJID == items[n].ChatJID; splits && sizes[0] <= limit {
			t.Fatalf("%d items split a chat, the first has %d rows", n, sizes[0])
		}
	})
}

func TestResolve_OneItemIsRefused_OthersAreAnswered(t *testing.T) {
	t.Parallel()
	for kind, want := range map[apierr.Kind]string{
		apierr.BadRequest: "dropped/bad_row ", // it will be refused for ever
		apierr.Internal:   "",                 // routd may be fixed
	} {
		h := newHarness(t)
		proxied := h.routd.Config.Handler
		h.g.routd.routd = serve(t, func(w http.ResponseWriter, r *http.Request) {
			for _, it := range readItems(r) {
				if it.Sender == "telegram:odd" {
					httpx.Error(w, apierr.New(kind, "odd sender"))
					return
				}
			}
			proxied.ServeHTTP(w, r)
		}).Talk(routeapi.Path)
		before := h.put("before", in("telegram:2"))
		odd := h.put("odd", from("telegram:odd"))
		after := h.take("after", in("telegram:3"))
		h.is(odd, want)
		h.are("routed/route main", before, after)
	}
}

// TestFitting_AnyItems: a request's JSON is never larger than routd's limit.
func TestFitting_AnyItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"<", "a", "\u2028", "\xff", "\x01", `"`, "ä"}).Draw(t, "text")
		field := strings.Repeat(text, rapid.IntRange(0, routeapi.MaxField).Draw(t, "bytes")/len(text))
		items := make([]routeapi.Item, rapid.IntRange(1, 200).Draw(t, "items"))
		for i := range items {
			items[i] = routeapi.Item{ID: 1<<62 + int64(i), ChatJID: field, Topic: field, Sender: field, ReceivedAt: 1 << 62}
		}
		n := cutChats(items, fitting(items))
		raw, err := json.Marshal(routeapi.Request{Items: items[:n]})
		if err != nil || n < 1 || len(raw) > httpx.MaxBody {
			t.Fatalf("%d items are %d bytes, %v", n, len(raw), err)
		}
	})
}

func TestResolve_TextTooLong_DropsTheRowAlone(t *testing.T) {
	h := parallel(t)
	long := h.put("long", in("telegram:2"))
	// As a program of its own might insert it: PutMessage cuts it.
	h.exec(fmt.Sprintf(`UPDATE messages SET sender = '%s'`, strings.Repeat("x", routeapi.MaxField+1)))
	after := h.take("after", in("telegram:2"))
	h.is(long, "dropped/bad_row ")
	h.is(after, "routed/route main")
}

// TestWaits_Lists_GiveEachChatOnce: a chat that is on a list already is not put there a second time.
func TestWaits_Lists_GiveEachChatOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fill func(w *waits)
		want []string
	}{
		"none":              {func(*waits) {}, nil},
		"in order, once":    {func(w *waits) { w.add(w.chat("a")); w.add(w.chat("b")); w.add(w.chat("a")) }, []string{"a", "b"}},
		"later ones last":   {func(w *waits) { w.addLater(w.chat("a")); w.add(w.chat("b")); w.addLater(w.chat("b")) }, []string{"b", "a"}},
		"put back is first": {func(w *waits) { w.add(w.chat("a")); w.add(w.chat("b")); w.putBack(w.pop(false)) }, []string{"a", "b"}},
		"due":               {func(w *waits) { w.addAt(w.chat("a"), 5); w.addAt(w.chat("b"), 6); w.addDue(5) }, []string{"a"}},
		"clock was set":     {func(w *waits) { w.addAt(w.chat("a"), 5); w.endDue(); w.addDue(9) }, []string{"a"}},
		"never due":         {func(w *waits) { w.addAt(w.chat("a"), 5); w.addAt(w.chat("a"), 0); w.addDue(9) }, nil},
		"routd answers":     {func(w *waits) { w.routd[w.chat("a")] = true; w.endRoutd(); w.endRoutd() }, []string{"a"}},
		"routes change":     {func(w *waits) { w.routes[w.chat("a")] = true; w.endRoutes(); w.endRoutes() }, []string{"a"}},
		"restarted":         {func(w *waits) { w.addAt(w.chat("a"), 5); w.restart(w.chat("a")); w.addDue(9) }, nil},
		"reset": {func(w *waits) {
			w.add(w.chat("a"))
			w.chat("b").skip(1)
			w.reset()
		}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWaits(newMeter(nil, nil, nil), nil)
			tc.fill(w)
			var got []string
			for c := w.pop(false); c != nil; c = w.pop(false) {
				got = append(got, c.jid)
			}
			if !slices.Equal(got, tc.want) || w.listed() {
				t.Errorf("got %q, want %q; still listed: %t", got, tc.want, w.listed())
			}
		})
	}
}

// TestWaits_Keep_ForgetsChatsThatWaitForNothing: memory must not grow with the chats that have ever written.
func TestWaits_Keep_ForgetsChatsThatWaitForNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		next    decide.State
		prepare func(w *waits, c *chat)
		kept    bool
	}{
		"nothing":             {},
		"a time":              {next: decide.State{Due: 7}, kept: true},
		"a route":             {next: decide.State{Awaits: decide.AwaitsRoute}, kept: true},
		"routd":               {prepare: func(w *waits, c *chat) { w.routd[c] = true }, kept: true},
		"a service":           {prepare: func(_ *waits, c *chat) { c.skip(1) }, kept: true},
		"another look":        {next: decide.State{Again: true}, kept: true},
		"an answer under way": {prepare: func(_ *waits, c *chat) { c.asked = &batch{} }, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWaits(newMeter(nil, nil, nil), nil)
			c := w.chat("a")
			if tc.prepare != nil {
				tc.prepare(w, c)
			}
			w.keep(&batch{chat: c}, tc.next, time.UnixMilli(5))
			if kept := w.chats["a"] != nil; kept != tc.kept {
				t.Errorf("kept: %t, want %t", kept, tc.kept)
			}
		})
	}
}
