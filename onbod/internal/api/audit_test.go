package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"arizuko/onbod/internal/api"
	"arizuko/pkg/store/storetest"
)

// TestAudit_EachDecision_IsARow makes each change that the API offers: it fails for a new endpoint that is not in the table.
func TestAudit_EachDecision_IsARow(t *testing.T) {
	path := storetest.Path(t)
	call := serveAt(t, path, connected)
	first := created(t, call)
	seen := map[string]bool{"POST /v1/requests": true} // gated asks for a chat: no operator does
	if rows := storetest.Audit(t, path); len(rows) != 0 {
		t.Errorf("a request is in the audit: %v", rows)
	}
	for _, decision := range []struct{ path, body, want string }{
		{"/reject", `{"code":"` + first + `","by":"web:op","reason":"no"}`, "web:op: reject: " + first + " telegram:-1"},
		{"/reopen", `{"code":"` + first + `","by":"web:op"}`, "web:op: reopen: " + first + " telegram:-1"},
		{"/approve", `{"code":"` + first + `","by":"web:op","folder":"family"}`, "web:op: approve: " + first + " telegram:-1 family"},
	} {
		seen["POST "+decision.path] = true
		before := len(storetest.Audit(t, path))
		for _, again := range []bool{false, true} {
			if status, body := call("POST", decision.path, decision.body); !again && status != 200 {
				t.Errorf("%s: %d %s", decision.path, status, body)
			}
		}
		if diff := cmp.Diff([]string{decision.want}, storetest.Audit(t, path)[before:]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", decision.path, diff)
		}
	}
	router := chi.NewRouter()
	(&api.API{}).Mount(router)
	err := chi.Walk(router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodGet && !seen[method+" "+strings.TrimSuffix(pattern, "/")] {
			t.Errorf("%s %s has no entry: which row of the audit does it write?", method, pattern)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
