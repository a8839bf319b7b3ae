package gateway

import (
	"context"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/redecided"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// redecide decides all rows again, by the routes as they are now.
func (h *harness) redecide() redecided.Check {
	h.t.Helper()
	cfg := h.g.cfg
	resolve := func(ctx context.Context, q routeapi.Replay) ([]routeapi.Answer, error) {
		res, o := h.g.routd.post(ctx, q.Items)
		for i := range res.Items {
			if folder := q.Engaged[res.Items[i].ID]; folder != "" {
				a := &res.Items[i]
				a.Action, a.Folder, a.Engaged, a.Reason = routeapi.Trigger, folder, true, msg.ReasonEngaged
			}
		}
		return res.Items, o
	}
	check := storetest.Must(Redecide(h.t.Context(), cfg, h.st.Reader, resolve, 0, 1000))(h.t)
	return check
}

// sendAll writes messages of many kinds, of which an edit is not compared.
func (h *harness) sendAll() {
	h.t.Helper()
	h.routd.route(func(it routeapi.Item, a *routeapi.Answer) {
		switch {
		case it.ChatJID == "telegram:-5":
			a.Action, a.Reason, a.Folder = routeapi.Observe, msg.ReasonRouteObserve, "main"
		case it.ChatJID == "telegram:-6":
			a.Action, a.Reason, a.Folder, a.Target = routeapi.Builtin, msg.ReasonBuiltinDrop, "", "builtin:drop"
		case it.ChatJID == "telegram:-8" && it.Folder == "":
			a.Action, a.Reason, a.Engaged, a.Folder = routeapi.Trigger, msg.ReasonEngaged, true, "main/eng"
		}
	})
	for _, text := range []string{"hello", "/ping", "/new", "@eng do it", "#deploy go", "#build", "#", "two\nlines"} {
		h.wait(time.Second) // each is a commit of its own
		h.take(text)
	}
	for _, chat := range []string{"telegram:-5", "telegram:-6", "telegram:-8"} {
		h.put("in "+chat, in(chat))
	}
	target := h.take("a post")
	h.put("👍", verb(msg.VerbReaction), on(target))
	h.wait(2 * maxHold)
	h.wait(time.Second)
	h.take("an edit", verb(msg.VerbEdit), on(target))
	h.wait(time.Second)
	h.is(h.take("late", func(m *msg.Message) { m.Timestamp -= 2 * msg24h }), "observed/stale main")
}

const msg24h = 24 * 3600_000

func TestRedecide_NothingHasChanged_AllAsStored(t *testing.T) {
	h := parallel(t)
	h.sendAll()
	got := h.redecide()
	if got.Different != 0 || got.Same < 12 || got.NotCompared[notByItself] != 1 {
		t.Errorf("%+v", got)
	}
	if undecided, err := rows.Undecided(t.Context(), h.st.Reader, dm, 0, 10); err != nil || len(undecided) > 0 {
		t.Errorf("it left %v undecided, %v", undecided, err)
	}
}

func TestRedecide_DecidedOtherwise_NamesRowAndReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(routeapi.Item, *routeapi.Answer)
		config string
		want   string
	}{
		"another route": {func(_ routeapi.Item, a *routeapi.Answer) { a.Folder = "main/eng" }, `{}`, "was routed (route) to main, now routed (route) to main/eng"},
		"observed": {func(_ routeapi.Item, a *routeapi.Answer) {
			a.Action, a.Reason = routeapi.Observe, msg.ReasonRouteObserve
		}, `{}`, "now observed (route_observe) to main"},
		"access": {nil, `{"access":["telegram:8"]}`, "was routed (route) to main, now dropped (no_access)"},
		"gate":   {func(_ routeapi.Item, a *routeapi.Answer) { a.Impulse.QuietMS = 5000 }, `{}`, "decided 0s after it came, now held for 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			h.is(h.take("hello"), "routed/route main")
			h.routd.route(tc.answer)
			h.write(func(tx *store.Tx) error { return storetest.SetConfig(tx, "main", []byte(tc.config)) })
			got := h.redecide()
			if got.Different != 1 || !strings.Contains(strings.Join(got.Examples, "\n"), tc.want) || !strings.Contains(got.Examples[0], "message 1 in telegram:1") {
				t.Errorf("%+v, want %q", got, tc.want)
			}
			// A change since then explains it.
			h.write(func(tx *store.Tx) error { return tx.PutAudit("cli", "change route", "1", h.clock.UnixMilli()) })
			if got := h.redecide(); got.Different != 0 || got.NotCompared[sinceChanged] != 1 {
				t.Errorf("after a change: %+v", got)
			}
		})
	}
}

func TestRedecide_PinnedSince_IsNoDifference(t *testing.T) {
	h := parallel(t)
	h.routd.route(func(it routeapi.Item, a *routeapi.Answer) {
		if it.StickyGroup != "" && it.Folder == "" && !it.HomeOnly {
			a.Folder, a.Home, a.Reason = it.StickyGroup, it.StickyGroup, msg.ReasonToSticky
		}
	})
	h.take("before")
	h.clock = h.clock.Add(time.Second)
	h.take("@eng")
	h.clock = h.clock.Add(time.Second)
	h.take("after")
	if got := h.redecide(); got.Different != 0 || got.NotCompared[sincePinned] != 1 || got.Same != 2 {
		t.Errorf("pinned: %+v", got)
	}
	h.clock = h.clock.Add(time.Second)
	h.routd.route(func(it routeapi.Item, a *routeapi.Answer) {
		if a.Home = it.StickyGroup; it.StickyGroup == "" { // of no group without its pin
			a.Action, a.Folder, a.Reason = routeapi.None, "", msg.ReasonNoRoute
		}
	})
	h.take("@")
	if got := h.redecide(); got.Different != 0 || got.NotCompared[sincePinned] != 4 {
		t.Errorf("released: %+v", got)
	}
}
