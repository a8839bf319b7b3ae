package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

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
		refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := readItems(r)
			for _, it := range body {
				if it.Sender == "telegram:odd" {
					httpx.Error(w, apierr.New(kind, "odd sender"))
					return
				}
			}
			proxied.ServeHTTP(w, r)
		}))
		t.Cleanup(refusing.Close)
		h.g.resolver.client.Base = refusing.URL
		before := h.put("before", in("telegram:2"))
		odd := h.put("odd", func(m *msg.Message) { m.Sender = "telegram:odd" })
		after := h.put("after", in("telegram:3"))
		h.step()
		h.is(odd, want)
		h.is(before, "routed/route main")
		h.is(after, "routed/route main")
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	registered := func(folder string) bool { return folder == "main" || folder == "eng" }
	for _, tt := range []struct {
		name   string
		item   routeapi.Item
		ok     bool
		folder string
		reason msg.Reason
	}{
		{"a chat of a platform", routeapi.Item{ChatJID: "telegram:1"}, false, "", ""},
		{"the same, pinned", routeapi.Item{ChatJID: "telegram:1", StickyGroup: "main"}, false, "", ""},
		{"a web chat", routeapi.Item{ChatJID: "web:main"}, true, "main", msg.ReasonAddress},
		{"the same, pinned", routeapi.Item{ChatJID: "web:main", StickyGroup: "eng"}, true, "eng", msg.ReasonAddress},
		{"pinned to a group that is gone", routeapi.Item{ChatJID: "web:main", StickyGroup: "gone"}, true, "main", msg.ReasonAddress},
		{"with a prefix", routeapi.Item{ChatJID: "web:main", Folder: "eng", StickyGroup: "main"}, true, "eng", msg.ReasonAddress},
		{"of no group", routeapi.Item{ChatJID: "web:gone"}, true, "", msg.ReasonNoGroup},
	} {
		a, ok := local(tt.item, registered, msg.Impulse{})
		if ok != tt.ok || a.Folder != tt.folder || a.Home != tt.folder || a.Reason != tt.reason {
			t.Errorf("%s: %v %+v", tt.name, ok, a)
		}
	}
}
