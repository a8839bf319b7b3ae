package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
	"arizuko/pkg/testkit/fakes/anthropic"
)

// The answer of gated to a call for which it has no room (gated/internal/tools) is a result that the model can read,
// and the turn goes on.
func TestAgent_MCPCallWithoutRoom_ModelIsToldAndTriesAgain(t *testing.T) {
	t.Parallel()
	const busy = `{"error":{"code":-32000,"message":"too many tool calls at once: nothing was done, try again"},"id":null,"jsonrpc":"2.0"}`
	called := make(chan string, 1)
	behind := tools(t, called)
	target, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"tools/call"`) && calls.Add(1) == 1 {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, busy)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	r := newFixture(t)
	r.model.SetModel(func(q anthropic.Request) anthropic.Reply {
		last := q.Messages[len(q.Messages)-1].Content
		result := last[len(last)-1].Content.Text()
		switch n := asked(q); {
		case n == 0, n == 1 && strings.Contains(result, "try again"):
			return anthropic.Reply{Tools: []anthropic.ToolUse{{Name: "mcp__arizuko__send_message", Input: map[string]any{"text": "hi"}}}}
		default:
			return anthropic.Reply{Text: result}
		}
	})
	s := r.open()
	start := agenttest.First("1", "", "send hi")
	start.MCP = &agentproto.MCP{URL: server.URL, Token: mcpToken}
	s.Send(start)
	s.WantAnswer("1", "sent")
	s.WantExit(0)
	if n := calls.Load(); n != 2 || len(called) != 1 {
		t.Errorf("%d calls, %d of them done", n, len(called))
	}
}
