package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/store/storetest"
)

// hidden is a value of a setting that no row of the audit may have.
const hidden = "s3cret-of-a-setting"

// TestAudit_EachChange_IsARow makes each change that the API offers: it fails for a new endpoint that is not in the table.
func TestAudit_EachChange_IsARow(t *testing.T) {
	f := newFixture(t)
	seen := map[string]bool{}
	for _, change := range []struct {
		endpoint, path, body string
		want                 []string // rows of the audit; none: nothing is changed
	}{
		{"POST /v1/resolve", "/v1/resolve", `{"items":[{"id":1,"chat_jid":"telegram:-1"}]}`, nil},
		{"POST /v1/routes/test", "/v1/routes/test", `{"chat_jid":"telegram:-1"}`, nil},
		{"POST /v1/groups", "/v1/groups", `{"folder":"main","config":{"agent":{"command":"` + hidden + `"}}}`, []string{"web:op: add group: main"}},
		{"POST /v1/groups", "/v1/groups", `{"folder":"main","config":{"agent":{"command":"` + hidden + `"}}}`, nil}, // as it is
		{"PUT /v1/groups/*", "/v1/groups/main", `{"folder":"main","name":"Main","config":{"agent":{"command":"` + hidden + `2"}}}`, []string{"web:op: change group: main: name, config.agent"}},
		{"PATCH /v1/groups/*", "/v1/groups/main", `{"config":{"agent":{"model":"m1","settings":{"KEY":"` + hidden + `"}}}}`, []string{"web:op: change group: main: config.agent (name default, model m1)"}},
		{"PATCH /v1/groups/*", "/v1/groups/main", `{"config":{"agent":{"model":"m1"}}}`, nil}, // as it is
		{"PATCH /v1/groups/*", "/v1/groups/main", `{"config":{"agent":{"model":null,"settings":null}}}`, []string{"web:op: change group: main: config.agent (name default, model default)"}},
		{"POST /v1/hooks", "/v1/hooks", `{"folder":"main","name":"ci","hook":{"kind":"github"},"secret":"` + hidden + `"}`, []string{"web:op: change group: main: config.hooks"}},
		{"PATCH /v1/groups/*", "/v1/groups/main", `{"config":{"hooks":{"ci":{"id":"abcdefghijklmnop"}}}}`, []string{"web:op: change group: main: config.hooks"}},
		{"POST /v1/hooks/secret", "/v1/hooks/secret", `{"id":"main.abcdefghijklmnop","secret":"` + hidden + `"}`, []string{"web:op: replace hook secret: ci of main"}},
		{"POST /v1/hooks/test", "/v1/hooks/test", `{"id":"main.abcdefghijklmnop"}`, nil},
		{"DELETE /v1/hooks/*", "/v1/hooks/main.abcdefghijklmnop", "", []string{"web:op: change group: main: config.hooks"}},
		{"POST /v1/routes", "/v1/routes", `{"match":"chat_jid=telegram:-1","target":"main"}`, []string{"web:op: add route: 1: order 0, chat_jid=telegram:-1 to main"}},
		{"PUT /v1/routes/{id}", "/v1/routes/1", `{"match":"chat_jid=telegram:-1","target":"main#observe"}`,
			[]string{"web:op: change route: 1: order 0, chat_jid=telegram:-1 to main#observe; before: order 0, chat_jid=telegram:-1 to main"}},
		{"PUT /v1/routes/{id}", "/v1/routes/1", `{"match":"chat_jid=telegram:-1","target":"main#observe"}`, nil}, // as it is
		{"POST /v1/engagement", "/v1/engagement", `{"jid":"telegram:-1","topic":"","folder":"main","ttl_seconds":60}`, []string{"web:op: open engagement: telegram:-1 with main for 1m0s"}},
		{"POST /v1/engagement", "/v1/engagement", `{"jid":"telegram:-1","topic":"","ttl_seconds":0}`, []string{"web:op: end engagement: telegram:-1 with main"}},
		{"POST /v1/approvals", "/v1/approvals", `{"code":"ABCD-1234","chat_jid":"telegram:-2","kind":"dm","folder":"new","by":"telegram:1"}`,
			[]string{"telegram:1: add group: new", "telegram:1: add route: 2: order 0, chat_jid=telegram:-2 to new"}},
		{"PUT /v1/routes", "/v1/routes", `{"digest":"DIGEST","routes":[{"id":1,"match":"chat_jid=telegram:-1","target":"main#observe"}]}`,
			[]string{"web:op: delete route: 2: order 0, chat_jid=telegram:-2 to new"}},
		{"DELETE /v1/routes/{id}", "/v1/routes/1", "", []string{"web:op: delete route: 1: order 0, chat_jid=telegram:-1 to main#observe"}},
		{"DELETE /v1/groups/*", "/v1/groups/new", "", []string{"web:op: delete group: new"}},
	} {
		method, _, _ := strings.Cut(change.endpoint, " ")
		seen[change.endpoint] = true
		body := strings.Replace(change.body, "DIGEST", f.routes(t).Digest, 1)
		before := len(storetest.Audit(t, f.path))
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, change.path, strings.NewReader(body))
		r.Header.Set("Arizuko-By", "web:op")
		f.ServeHTTP(w, r)
		if w.Code > 299 {
			t.Errorf("%s %s: %d %s", method, change.path, w.Code, w.Body)
		}
		rows := storetest.Audit(t, f.path)[before:]
		if diff := cmp.Diff(change.want, append([]string(nil), rows...)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", method, body, diff)
		}
		if strings.Contains(strings.Join(rows, " "), hidden) {
			t.Errorf("%s: a setting is in the audit: %v", change.endpoint, rows)
		}
	}
	err := chi.Walk(f.Handler.(chi.Routes), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodGet && !seen[method+" "+pattern] {
			t.Errorf("%s %s has no entry: which row of the audit does it write?", method, pattern)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
