package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
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
		h.g.routd.client.Base = serve(t, func(w http.ResponseWriter, r *http.Request) {
			for _, it := range readItems(r) {
				if it.Sender == "telegram:odd" {
					httpx.Error(w, apierr.New(kind, "odd sender"))
					return
				}
			}
			proxied.ServeHTTP(w, r)
		}).Base
		before := h.put("before", in("telegram:2"))
		odd := h.put("odd", func(m *msg.Message) { m.Sender = "telegram:odd" })
		after := h.take("after", in("telegram:3"))
		h.is(odd, want)
		h.is(before, "routed/route main")
		h.is(after, "routed/route main")
	}
}

// TestFitting_AnyItems: a request's JSON is never larger than what routd reads.
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
	t.Parallel()
	h := newHarness(t)
	long := h.put("long", in("telegram:2"))
	// As a program of its own might insert it: PutMessage cuts it.
	h.exec(fmt.Sprintf(`UPDATE messages SET sender = '%s'`, strings.Repeat("x", routeapi.MaxField+1)))
	after := h.take("after", in("telegram:2"))
	h.is(long, "dropped/bad_row ")
	h.is(after, "routed/route main")
}
