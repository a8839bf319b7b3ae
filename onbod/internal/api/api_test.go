package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/onbod/internal/api"
	"arizuko/onbod/internal/onboarding"
	"arizuko/pkg/httpx"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store/storetest"
)

// serve is the API with a routd that answers every approval with the status and body.
func serve(t *testing.T, routd func(a routeapi.Approval) (status int, body any)) func(method, path, body string) (int, string) {
	t.Helper()
	return serveAt(t, storetest.Path(t), routd)
}

// serveAt is serve with the database file at a path.
func serveAt(t *testing.T, path string, routd func(a routeapi.Approval) (status int, body any)) func(method, path, body string) (int, string) {
	t.Helper()
	router := chi.NewRouter()
	fake := httptest.NewServer(router)
	t.Cleanup(fake.Close)
	router.Post(routeapi.ApprovalPath, approvals(routd))
	st := storetest.OpenAt(t, path, nil)
	client := httpx.NewClient("routd", fake.URL, "")
	t.Cleanup(client.HTTP.CloseIdleConnections)
	o := onboarding.New(onboarding.Config{
		Operators: map[string]bool{"telegram:42": true}, TTL: time.Hour, MaxPerSender: 2, MaxPerHour: 9, MaxPending: 9, Groups: t.TempDir(), Now: time.Now,
	}, st, onboarding.RoutdClient{Client: client}, slog.New(slog.DiscardHandler), prometheus.NewRegistry(), func(...string) {})
	a := api.API{Onboarding: o, Store: st, TTL: time.Hour}
	served := chi.NewRouter()
	a.Mount(served)
	return func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		served.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
}

func connected(a routeapi.Approval) (int, any) {
	return 200, routeapi.Approved{ChatJID: a.ChatJID, Folder: a.Folder, Created: true}
}

// created asks for a request and returns its code.
func created(t *testing.T, call func(method, path, body string) (int, string)) string {
	t.Helper()
	status, body := call("POST", "/v1/requests", `{"chat_jid":"telegram:-1","sender":"telegram:7","sender_name":"Ada","title":"Family","kind":"group","sample":"hi"}`)
	var asked struct {
		Code, State string
		Created     bool
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil || status != 200 || !asked.Created || asked.State != "pending" {
		t.Fatalf("%d %s, %v", status, body, err)
	}
	return asked.Code
}

func TestAPI_RequestListedApprovedAndDecidedOnce(t *testing.T) {
	call := serve(t, connected)
	if _, body := call("GET", "/v1/requests?state=pending", ""); body != `{"requests":[]}` {
		t.Errorf("none: %s", body)
	}
	code := created(t, call)
	_, body := call("GET", "/v1/requests?state=pending", "")
	for _, field := range []string{
		`"code":"` + code + `"`, `"chat_jid":"telegram:-1"`, `"kind":"group"`, `"sender":"telegram:7"`, `"sender_name":"Ada"`, `"title":"Family"`,
		`"sample":"hi"`, `"thread_id":""`, `"state":"pending"`, `"folder":""`, `"decided_by":""`, `"decided_at":0`, `"reason":""`, `"default_folder":"telegram-family"`,
	} {
		if !strings.Contains(body, field) {
			t.Errorf("no %s in %s", field, body)
		}
	}
	want := `{"code":"` + code + `","state":"approved","folder":"fam","decided_by":"telegram:42",` +
		`"text":"Connected ` + "`Family` (`telegram:-1`)" + ` to the new group fam."}`
	if status, body := call("POST", "/approve", `{"code":"`+code+`","folder":"fam","by":"telegram:42"}`); status != 200 || body != want {
		t.Errorf("%d %s, want %s", status, body, want)
	}
	if _, body := call("GET", "/v1/requests?state=pending", ""); body != `{"requests":[]}` {
		t.Errorf("decided: %s", body)
	}
	if _, body := call("GET", "/v1/requests", ""); !strings.Contains(body, `"expires_at":0,"default_folder":""`) {
		t.Errorf("all: %s", body)
	}
}

func TestAPI_Errors_HaveStatusAndText(t *testing.T) {
	call := serve(t, connected)
	code := created(t, call)
	for _, tt := range []struct {
		path, body string
		status     int
		text       string
	}{
		{"/v1/requests", `{"chat_jid":"telegram"}`, 400, "is not platform:room"},
		{"/v1/requests", `{"chat":"telegram:1"}`, 400, "unknown field"},
		{"/approve", `{"code":"NONE-0000","by":"telegram:42"}`, 404, "there is no request"},
		{"/approve", `{"code":"` + code + `","by":"telegram:7"}`, 403, "is not an operator"},
		{"/approve", `{"code":"` + code + `","by":"telegram:42","folder":"../x"}`, 400, "segment"},
		{"/reject", `{"code":"` + code + `","by":"telegram:42","reason":"no"}`, 200, "is rejected"},
		{"/reject", `{"code":"` + code + `","by":"web:ada"}`, 409, "was rejected by telegram:42"},
		{"/v1/requests", `{"chat_jid":"telegram:-1"}`, 200, `"created":false,"state":"rejected"`},
		{"/approve", ``, 400, "empty"},
	} {
		if status, body := call("POST", tt.path, tt.body); status != tt.status || !strings.Contains(body, tt.text) {
			t.Errorf("%s %s: %d %s, want %d with %q", tt.path, tt.body, status, body, tt.status, tt.text)
		}
	}
	if status, body := call("GET", "/v1/requests?state=open", ""); status != 400 || !strings.Contains(body, "is not pending") {
		t.Errorf("%d %s", status, body)
	}
}

// routd's answer decides whether the approval is kept.
func TestAPI_RoutdFails_ApprovalKeptOnlyIfItMayHaveActed(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		kind   string
		want   int
		text   string
	}{
		"conflict":    {409, "conflict", 409, "is still pending: as routd says"},
		"bad request": {400, "bad_request", 400, "is still pending: as routd says"},
		"secret":      {401, "unauthorized", 409, "still pending: routd"},
		"old routd":   {404, "not_found", 409, "still pending: routd"},
		"its fault":   {500, "internal", 409, "still pending: routd"},
		"no time":     {503, "unavailable", 200, `"state":"pending"`},
	} {
		t.Run(name, func(t *testing.T) {
			call := serve(t, func(routeapi.Approval) (int, any) {
				return tt.status, map[string]any{"error": map[string]string{"kind": tt.kind, "message": "as routd says"}}
			})
			code := created(t, call)
			status, body := call("POST", "/approve", `{"code":"`+code+`","folder":"fam","by":"telegram:42"}`)
			if status != tt.want || !strings.Contains(body, tt.text) {
				t.Errorf("%d %s, want %d with %q", status, body, tt.want, tt.text)
			}
			_, list := call("GET", "/v1/requests?state=pending", "")
			if kept := strings.Contains(list, `"folder":"fam"`); kept != (tt.status == 503) {
				t.Errorf("kept %t: %s", kept, list)
			}
		})
	}
}

// approvals answers approvals as routd would.
func approvals(answer func(routeapi.Approval) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := httpx.Decode[routeapi.Approval](r)
		if err != nil {
			httpx.Error(w, err)
			return
		}
		status, body := answer(a)
		httpx.JSON(w, status, body)
	}
}
