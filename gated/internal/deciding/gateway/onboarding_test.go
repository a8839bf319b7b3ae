package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/chatmove"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// end decides the request of a chat, as onbod does, and pokes.
func (h *harness) end(jid string, state factrows.RequestState) {
	h.t.Helper()
	r, err := factrows.PendingRequest(h.t.Context(), h.st.Reader, jid)
	if err != nil || r == nil {
		h.t.Fatalf("no pending request of %s, %v", jid, err)
	}
	folder := ""
	if state == factrows.RequestApproved {
		folder = "main"
	}
	h.write(func(tx *store.Tx) error {
		return tx.Exec(`UPDATE onboarding_requests SET state = ?, folder = ?, decided_by = 'telegram:9', decided_at = ? WHERE code = ?`,
			state, store.Null(folder), h.clock.UnixMilli(), r.Code)
	})
	h.poke()
}

// poke is a poke about something else than a row.
func (h *harness) poke() {
	h.t.Helper()
	h.g.outside.lookAt = time.Time{} // however short ago the last one was
	h.g.sweeper.pokedAt = time.Now()
	h.g.afterPoke(h.t.Context())
	h.step()
}

func (h *harness) parked(ms ...*msg.Message) {
	h.t.Helper()
	for _, m := range ms {
		h.is(m, "onboarding/awaiting_approval ")
	}
}

// TestUnknownChat_Approved_RowsAreAnsweredInOrder: one call, the rows wait, also over a
// restart, and are decided before a newer one.
func TestUnknownChat_Approved_RowsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint("restarts ", restarts), func(t *testing.T) {
			h, o := parallelOnbod(t)
			h.write(func(tx *store.Tx) error { return tx.PutChat(dm, msg.ChatDM, "Ada", 1) })
			one := h.put("one", func(m *msg.Message) { m.SenderName = "Ada L." })
			two := h.take("two")
			h.parked(one, two)
			diff(t, "calls", o.calls(), []onboardapi.Ask{{
				ChatJID: dm, Sender: "telegram:7", SenderName: "Ada L.", Title: "Ada", Kind: msg.ChatDM, Sample: "one",
			}})
			three, reaction := h.put("three"), h.put("👍", verb(msg.VerbReaction))
			h.step()
			h.wait(maxHold)
			h.parked(three)
			h.is(reaction, "dropped/no_route ")
			h.routd.route(nil)
			h.end(dm, factrows.RequestApproved)
			if restarts {
				h.restart()
			}
			four := h.take("four")
			for _, m := range []*msg.Message{one, two, three, four} {
				h.is(m, "routed/route main")
			}
			turns := h.dispatched() // the first is queued, and has taken in the last row
			diff(t, "last turn", turns[len(turns)-1], []string{"one", "two", "three", "four"})
			if n := len(o.calls()); n != 1 || len(h.g.outside.parked) != 0 || len(h.g.waits.chats) != 0 {
				t.Errorf("%d calls, parked %v, chats %v", n, h.g.outside.parked, h.g.waits.chats)
			}
		})
	}
}

func TestUnknownChat_NewRowAfterApproval_WaitsForParkedOnes(t *testing.T) {
	h, _ := parallelOnbod(t)
	one := h.take("one")
	h.parked(one)
	h.routd.route(nil) // no poke comes
	two := h.take("two")
	h.are("routed/route main", one, two)
	diff(t, "turns", h.dispatched(), [][]string{{"one", "two"}})
}

// TestUnknownChat_OnbodDown_StopDropsOwnRows: nothing is parked yet, so the first rows of
// all members are undecided. Only an operator's /stop drops all of them.
func TestUnknownChat_OnbodDown_StopDropsOwnRows(t *testing.T) {
	t.Parallel()
	for sender, want := range map[string]string{"telegram:7": "", "telegram:9": "dropped/stopped "} {
		h, o := withOnbod(t)
		o.set(string(apierr.Unavailable))
		other, own := h.put("of another member", from("telegram:8")), h.put("own", from(sender))
		h.step()
		stop := h.take("/stop", from(sender))
		h.is(stop, "command/command ")
		diff(t, "replies", h.replies(stop), []string{"stopped"})
		h.is(own, "dropped/stopped ")
		h.is(other, want)
		o.set("")
		h.wait(maxRequestDelay)
		if want == "" {
			h.parked(other)
		}
	}
}

// TestUnknownChat_NotConnected_RowsAreDropped: by an operator, in time, or by onbod, whose refusal counts for a minute.
func TestUnknownChat_NotConnected_RowsAreDropped(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end    factrows.RequestState // of the first request, "" if onbod opens none
		answer string                // of onbod, then
		first  string                // how the first row is decided
		again  string                // and further ones
		calls  int
	}{
		"rejected":   {factrows.RequestRejected, "rejected", "dropped/rejected ", "dropped/rejected ", 2},
		"expired":    {factrows.RequestExpired, "rejected", "dropped/expired ", "dropped/rejected ", 2},
		"too many":   {"", "limited", "dropped/onboarding_limit ", "dropped/onboarding_limit ", 1},
		"impossible": {"", string(apierr.BadRequest), "dropped/bad_row ", "dropped/bad_row ", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h, o := parallelOnbod(t)
			if tt.end == "" {
				o.set(tt.answer)
			}
			one := h.take("one")
			if tt.end != "" {
				h.end(dm, tt.end)
			}
			h.is(one, tt.first)
			o.set(tt.answer)
			for range 3 {
				h.is(h.take("again"), tt.again)
			}
			if n := len(o.calls()); n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
			o.set("")
			h.clock = h.clock.Add(refusalTime)
			if h.g.requests.prune(h.g.now()); len(h.g.requests.refusals) != 0 {
				t.Errorf("refusals are kept: %v", h.g.requests.refusals)
			}
			h.parked(h.take("a day later"))
		})
	}
}

// TestUnknownChat_Flood_CostsOneCall: of thousands of rows fifty wait.
func TestUnknownChat_Flood_CostsOneCall(t *testing.T) {
	h, o := parallelOnbod(t)
	const flood = 3000
	rows := h.putMany(flood, func(int, *msg.Message) {})
	h.step()
	h.parked(rows[0], rows[49])
	h.are("dropped/onboarding_full ", rows[50], rows[flood-1])
	h.is(h.take("later"), "dropped/onboarding_full ")
	if n := len(o.calls()); n != 1 || len(h.g.waits.chats) != 0 {
		t.Errorf("%d calls, %d chats in memory", n, len(h.g.waits.chats))
	}
}

// TestUnknownChats_OnbodDown_NoStorm: rows wait undecided, one call at a time is tried, and
// chats with a group and commands go on.
func TestUnknownChats_OnbodDown_NoStorm(t *testing.T) {
	t.Parallel()
	for _, kind := range []apierr.Kind{apierr.Unavailable, apierr.Internal, apierr.Unauthorized, apierr.NotFound, "nginx", "tls"} {
		t.Run(string(kind), func(t *testing.T) {
			h, o := parallelOnbod(t)
			h.routd.route(func(it routeapi.Item, a *routeapi.Answer) {
				if it.ChatJID != "telegram:2" {
					unrouted(it, a)
				}
			})
			o.set(string(kind))
			var rows []*msg.Message
			for i := range 100 {
				rows = append(rows, h.put("hi", in(fmt.Sprint("telegram:1", i))))
			}
			h.step()
			before := len(o.calls())
			h.is(h.take("hi", in("telegram:2")), "routed/route main")
			h.is(h.take("/ping", in("telegram:10")), "command/command ")
			for range 60 {
				h.wait(time.Second)
			}
			if n := len(o.calls()); before > maxRequests || n-before > 10 {
				t.Errorf("%d calls at once, then %d within a minute", before, n-before)
			}
			for _, m := range rows {
				h.is(m, "")
			}
			if n := strings.Count(h.log.String(), "onbod opened no request"); n != 1 {
				t.Errorf("the log says %d times that onbod is down", n)
			}
			if len(h.waits) != 1 || !strings.Contains(h.waits[0], "onbod does not answer") {
				t.Errorf("reported: %q", h.waits)
			}
			o.set("")
			h.wait(maxRequestDelay)
			h.parked(rows...)
			if len(h.waits) > 0 {
				t.Errorf("reported afterwards: %q", h.waits)
			}
			if o.most > maxRequests {
				t.Errorf("%d calls at once", o.most)
			}
		})
	}
}

func TestUnknownChat_OnbodDown_RouteAddedByHand_ResolvesIt(t *testing.T) {
	h, o := parallelOnbod(t)
	o.set(string(apierr.Unavailable))
	one := h.take("one")
	h.is(one, "")
	h.routd.route(nil)
	h.poke()
	h.is(one, "routed/route main")
	calls := len(o.calls())
	o.set("")
	h.wait(maxRequestDelay)
	if n := len(o.calls()); n != calls || len(h.g.requests.queue)+len(h.g.requests.chats) != 0 {
		t.Errorf("%d calls more, %+v", n-calls, h.g.requests)
	}
}

// TestUnknownChats_OnbodHangs_OthersGoOn: onbod accepts the call and never answers.
func TestUnknownChats_OnbodHangs_OthersGoOn(t *testing.T) {
	h, o := parallelOnbod(t)
	o.hang = make(chan struct{})
	h.g.calls.to.Dashd = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		httpx.JSON(w, http.StatusOK, map[string]string{"text": "fine"})
	})
	for i := range 50 {
		h.put("hi", in(fmt.Sprint("telegram:1", i)))
	}
	for h.g.requests.running < maxRequests || h.g.routd.out != nil {
		if !h.g.runOnce(h.t.Context()) && h.g.routd.out != nil {
			h.g.listen(h.t.Context(), nil, nil, false)
		}
	}
	h.routd.route(nil)
	status := h.put("/status", in("telegram:2"))
	hello := h.put("hi", in("telegram:3"))
	for h.row(status.ID).Disposition == "" || h.row(hello.ID).Disposition == "" {
		h.g.listen(h.t.Context(), nil, nil, h.g.runOnce(h.t.Context()))
	}
	h.is(status, "command/command ")
	h.is(hello, "routed/route main")
	close(o.hang)
	h.step()
}

func TestUnknownChat_Stop_DropsParkedRows(t *testing.T) {
	h, o := parallelOnbod(t)
	one := h.take("one")
	h.parked(one)
	stop := h.take("/stop")
	h.is(stop, "command/command ")
	h.is(one, "dropped/stopped ")
	other := h.take("of another member", from("telegram:8"))
	h.parked(other)
	h.take("/stop")
	h.parked(other)
	status := h.take("/status")
	diff(t, "status", h.replies(status), []string{"This chat is not connected to a group yet. It waits for an operator to approve request ABCD-0001."})
	two := h.take("two")
	h.parked(two)
	h.routd.route(nil)
	h.poke()
	h.is(two, "routed/route main")
	h.is(one, "dropped/stopped ")
	if n := len(o.calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestUnknownChat_Edits_ChangeParkedRows(t *testing.T) {
	h, _ := parallelOnbod(t)
	one, two, three := h.put("one"), h.put("two"), h.put("three")
	h.step()
	edit := h.take("one!", verb(msg.VerbEdit), on(one))
	gone := h.take("", verb(msg.VerbDelete), on(two))
	h.are("dropped/edit_applied ", edit, gone)
	h.is(two, "dropped/deleted ")
	h.parked(one, three)
	h.routd.route(nil)
	h.poke()
	diff(t, "turns", h.dispatched(), [][]string{{"one!", "three"}})
}

func TestUnknownChat_Moved_ParkedRowsGoAlong(t *testing.T) {
	h, o := parallelOnbod(t)
	const from, to = "telegram:-1", "telegram:-1001"
	one := h.take("one", in(from), verb(msg.VerbMention))
	h.parked(one)
	h.write(func(tx *store.Tx) error { return chatmove.Move(tx, from, to, h.clock.UnixMilli()) })
	two := h.take("two", in(to), verb(msg.VerbMention)) // before gated has read the move
	h.parked(one, two)
	h.routd.route(nil)
	three := h.take("three", in(to), verb(msg.VerbMention))
	diff(t, "turns", h.dispatched(), [][]string{{"one", "two", "three"}})
	h.is(three, "routed/route main")
	if n := len(o.calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestUnknownChat_RouteToOnbod_NeedsNoDaemons(t *testing.T) {
	h, o := parallelOnbod(t)
	h.routd.route(func(_ routeapi.Item, a *routeapi.Answer) {
		a.Action, a.Folder, a.Home, a.Target, a.RouteID, a.Reason = routeapi.Daemon, "", "", "daemon:onbod", 7, msg.ReasonDaemon
	})
	h.parked(h.take("one", in("telegram:-1")))
	if n := len(o.calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestParkedChats_Many_CostLittle: thousands of chats that wait hold nothing but their
// address in memory, and a change of the routes takes up those that it is about.
func TestParkedChats_Many_CostLittle(t *testing.T) {
	h, _ := parallelOnbod(t)
	const chats = 2000
	rows := h.putMany(chats, func(n int, m *msg.Message) {
		m.Sender = fmt.Sprint("telegram:", 1000+n)
		m.ChatJID = m.Sender
	})
	h.write(func(tx *store.Tx) error {
		for i, m := range rows {
			err := storetest.PutRequest(tx, &factrows.Request{Code: fmt.Sprintf("ABCD-%04d", i), ChatJID: m.ChatJID, Kind: msg.ChatDM, CreatedAt: 1})
			if err != nil {
				return err
			}
		}
		return nil
	})
	h.step()
	h.parked(rows[0], rows[chats-1])
	h.poke()
	if len(h.g.waits.chats) != 0 || len(h.g.outside.parked) != chats {
		t.Errorf("%d chats in memory, %d with parked rows", len(h.g.waits.chats), len(h.g.outside.parked))
	}
	h.routd.route(func(it routeapi.Item, a *routeapi.Answer) {
		if it.ChatJID != rows[7].ChatJID {
			unrouted(it, a)
		}
	})
	h.poke()
	h.is(rows[7], "routed/route main")
	h.parked(rows[8])
	asked := h.routd.requests()
	h.poke()
	if n := h.routd.requests() - asked; n != 0 {
		t.Errorf("a poke about nothing asks routd %d times about rows", n)
	}
}
