package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/routd/internal/api"
	"arizuko/routd/internal/engagement"
	"arizuko/routd/internal/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 20 * time.Minute

// fixture is the API on its own database file, without a daemon around it.
type fixture struct {
	http.Handler
	t       testing.TB
	path    string // of the database file
	st      *store.Store
	metrics *prometheus.Registry
	log     bytes.Buffer
	hooks   []*http.Request // that dashd got, with their bodies
}

// dashd takes deliveries of hooks.
func (f *fixture) dashd(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.hooks = append(f.hooks, r)
	httpx.JSON(w, http.StatusAccepted, map[string]any{"id": 7, "state": "stored"})
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	path := storetest.Path(t)
	f := &fixture{t: t, path: path, st: storetest.OpenAt(t, path, nil), metrics: prometheus.NewRegistry()}
	log := slog.New(slog.NewTextHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	loader, err := routing.Open(t.Context(), f.st, msg.DefaultImpulse(100, 5*time.Minute), func(*routing.Table) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loader.Close() })
	tracker, err := engagement.Open(t.Context(), f.st, ttl, time.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	router := chi.NewRouter()
	a := api.API{
		Store: f.st, Loader: loader, Engagement: tracker, TTL: ttl, Log: log, Resolved: api.Resolved(f.metrics), Now: time.Now,
		Operators: map[string]bool{"telegram:1": true}, Data: filepath.Dir(path),
	}
	dashd := httptest.NewServer(http.HandlerFunc(f.dashd))
	t.Cleanup(dashd.Close)
	a.Dashd = api.Dashd{Client: httpx.NewClient("dashd", dashd.URL, ""), Public: "https://bot.example"}
	a.Mount(router)
	f.Handler = router
	return f
}

// call makes a request and returns the answer's status and body.
func (f *fixture) call(method, path, body string) (status int, answer string) {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// must makes a request and fails the test unless it is answered with status.
func (f *fixture) must(t testing.TB, status int, method, path, body string) string {
	t.Helper()
	got, answer := f.call(method, path, body)
	if got != status {
		t.Fatalf("%s %s %.200s: %d, want %d\n%s", method, path, body, got, status, answer)
	}
	return answer
}

// refused makes a request and fails the test unless it is answered with an error of the kind, and
// with the text in its message.
func (f *fixture) refused(t testing.TB, kind apierr.Kind, text, method, path, body string) {
	t.Helper()
	_, got := f.call(method, path, body)
	var answer struct {
		Error struct {
			Kind    apierr.Kind
			Message string
		}
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil {
		t.Fatalf("%s %s %.200s: %v in %s", method, path, body, err, got)
	}
	if answer.Error.Kind != kind || !strings.Contains(answer.Error.Message, text) || len(got) > 1000 {
		t.Errorf("%s %s %.200s: %.300s, want %s with %q", method, path, body, got, kind, text)
	}
}

// resolve returns the answer on one item.
func (f *fixture) resolve(t testing.TB, item routeapi.Item) routeapi.Answer {
	t.Helper()
	body, err := json.Marshal(routeapi.Request{Items: []routeapi.Item{item}})
	if err != nil {
		t.Fatal(err)
	}
	var response routeapi.Response
	if err := json.Unmarshal([]byte(f.must(t, 200, "POST", routeapi.Path, string(body))), &response); err != nil {
		t.Fatal(err)
	}
	return response.Items[0]
}

// equal compares an answer with the JSON wanted, after dropping the fields named.
func equal(t *testing.T, want, got string, drop ...string) {
	t.Helper()
	var w, g map[string]any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	for _, name := range drop {
		if _, ok := g[name]; !ok {
			t.Errorf("no %s in %s", name, got)
		}
		delete(g, name)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// resolved returns the count of answers with a reason.
func (f *fixture) resolved(t testing.TB, reason string) float64 {
	t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "arizuko_routd_resolved_total" && m.GetLabel()[0].GetValue() == reason {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
