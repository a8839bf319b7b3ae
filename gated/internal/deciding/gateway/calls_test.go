package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"arizuko/pkg/httpx"
	"arizuko/pkg/routeapi"
)

// readItems reads a request to routd and leaves its body to be read again.
func readItems(r *http.Request) []routeapi.Item {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req routeapi.Request
	_ = json.Unmarshal(body, &req)
	return req.Items
}

// toDaemon routes every row to the daemon "crm".
func toDaemon(_ routeapi.Item, a *routeapi.Answer) {
	a.Action, a.Folder, a.Target, a.RouteID = routeapi.Daemon, "", "daemon:crm", 7
}

// finishCalls handles the ends of all calls to services.
func (h *harness) finishCalls() {
	h.t.Helper()
	for h.g.calls.running > 0 {
		h.g.listen(h.t.Context(), nil, nil, false)
	}
	h.step()
}

// hanging is a service that answers once hang is closed.
func hanging(t *testing.T, hang chan struct{}) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		<-hang
		httpx.JSON(w, http.StatusOK, map[string]string{"text": "fine"})
	}).Base
}

func TestDaemon_AcceptsRows_OneAfterAnother(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.routd.route(toDaemon)
	var texts []string
	answers := make(chan struct{})
	h.g.calls.to.Daemons = map[string]*httpx.Client{"crm": serve(t, func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			RouteID int64 `json:"route_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.RouteID != 7 {
			t.Errorf("request %+v, %v", req, err)
		}
		<-answers
		texts = append(texts, req.Message.Content) // no two calls of a chat overlap
		httpx.JSON(w, http.StatusOK, map[string]string{"reply": "noted " + req.Message.Content})
	})}
	first, second := h.put("one"), h.put("two")
	h.step()
	h.is(first, "")
	ping := h.take("/ping")
	h.is(ping, "command/command ")
	close(answers)
	h.finishCalls()
	h.is(first, "routed/daemon daemon:crm")
	h.is(second, "routed/daemon daemon:crm")
	diff(t, "rows", texts, []string{"one", "two"})
	diff(t, "replies", append(h.replies(first), h.replies(second)...), []string{"noted one", "noted two"})
}

func TestDaemon_Unknown_DropsTheRow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.routd.route(toDaemon)
	m := h.take("one")
	h.finishCalls()
	h.is(m, "dropped/daemon_failed ")
	if !strings.Contains(h.log.String(), "daemon=crm") {
		t.Errorf("log:\n%s", h.log.String())
	}
}

func TestStatus_IsAnsweredByItsService(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.g.calls.to.Dashd = serve(t, func(w http.ResponseWriter, r *http.Request) {
		httpx.JSON(w, http.StatusOK, map[string]string{"text": r.URL.Path + " of " + r.URL.Query().Get("chat_jid")})
	})
	m := h.take("/status")
	h.finishCalls()
	h.is(m, "command/command ")
	diff(t, "replies", h.replies(m), []string{"/status of " + dm})
}
