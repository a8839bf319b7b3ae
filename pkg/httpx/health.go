package httpx

import (
	"io"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health adds /healthz, /readyz and /metrics to a router; they need no credentials. ready returns
// the reasons why the daemon still waits, which make it not ready, and notes for operators, which do
// not. /readyz shows notes to those who have the secret only: they name routes, folders and
// errors. Both functions must be safe for concurrent use.
func Health(r chi.Router, metrics prometheus.Gatherer, secret func() string, ready func() (waiting, notes []string)) {
	get := func(path string, answer http.Handler) {
		r.Method(http.MethodGet, path, answer)
		r.Method(http.MethodHead, path, answer)
	}
	get("/healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") }))
	get("/readyz", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waiting, notes := ready()
		if shown := isProven(r) || r.Header.Get("Authorization") != "" && HasSecret(r, secret()); !shown {
			notes = nil
		}
		if len(waiting) > 0 {
			text(w, http.StatusServiceUnavailable, append(waiting, notes...)...)
			return
		}
		text(w, http.StatusOK, append([]string{"ok"}, notes...)...)
	}))
	get("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
}

func text(w http.ResponseWriter, status int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.Join(lines, "\n")+"\n")
}
