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
		h.g.routd.client.Base = refusing.URL
		before := h.put("before", in("telegram:2"))
		odd := h.put("odd", func(m *msg.Message) { m.Sender = "telegram:odd" })
		after := h.put("after", in("telegram:3"))
		h.step()
		h.is(odd, want)
		h.is(before, "routed/route main")
		h.is(after, "routed/route main")
	}
}
