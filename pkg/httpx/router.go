package httpx

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/apierr"
	"arizuko/pkg/metrics"
)

// NewRouter returns a router that recovers panics, limits bodies to MaxBody, answers unknown paths
// in JSON, logs internal errors and measures requests into reg, which may be nil. Routers of one
// process may share it.
func NewRouter(log *slog.Logger, reg prometheus.Registerer) chi.Router {
	r := chi.NewRouter()
	r.Use(observe(log, requestSeconds(reg)), limitBody)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		Error(w, apierr.New(apierr.NotFound, "no such path: %s", r.URL.Path))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		Error(w, apierr.New(apierr.BadRequest, "%s does not take %s", r.URL.Path, r.Method))
	})
	return r
}

// Bearer accepts requests of those who have the secret, see HasSecret.
func Bearer(secret string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !HasSecret(r, secret) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				Error(w, apierr.New(apierr.Unauthorized,
					"want the header Authorization: Bearer with the shared secret"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// HasSecret reports whether a request is of a client that has the secret: it came by the daemon's socket (ListenLocal),
// is signed (Verify), or carries `Authorization: Bearer <secret>`, as calls by hand do. No bearer is that of an empty
// secret.
func HasSecret(r *http.Request, secret string) bool {
	if isProven(r) {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// Hashed, so that the time of the comparison does not depend on the length.
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(secret))
	same := subtle.ConstantTimeCompare(got[:], want[:]) == 1
	return same && secret != "" && strings.EqualFold(scheme, "Bearer")
}

func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = limited(w, r.Body, MaxBody)
		next.ServeHTTP(w, r)
	})
}

func requestSeconds(reg prometheus.Registerer) *prometheus.HistogramVec {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "arizuko_http_request_seconds", Help: "Time to answer HTTP requests.", Buckets: metrics.Quick(),
	}, []string{"method", "route", "status"})
	if reg == nil {
		return seconds
	}
	return metrics.Shared(reg, seconds)
}

// observe is the outermost middleware: it sees how each request ended.
func observe(log *slog.Logger, seconds *prometheus.HistogramVec) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := &recorder{WrapResponseWriter: middleware.NewWrapResponseWriter(w, r.ProtoMajor), log: log,
				seconds: seconds}
			start := time.Now()
			defer func() {
				p := recover()
				if p != nil {
					rec.panicked(p)
				}
				status := cmp.Or(rec.Status(), http.StatusOK) // the server sends it for a handler that wrote nothing
				if rec.stack != "" {
					log.Error("panic in request handler", "method", r.Method, "path", r.URL.Path, "panic", p, "stack",
						rec.stack)
					rec.err = nil
				}
				if !rec.talked {
					rec.note(r, method(r), start, status, rec.err)
				}
				if p != nil && rec.cutOff {
					panic(http.ErrAbortHandler)
				}
			}()
			next.ServeHTTP(rec, r)
		})
	}
}

// note measures a request that was answered, and logs its error if that is a bug.
func (rec *recorder) note(r *http.Request, method string, start time.Time, status int, err error) {
	route := chi.RouteContext(r.Context()).RoutePattern()
	rec.seconds.WithLabelValues(method, route, strconv.Itoa(status)).Observe(time.Since(start).Seconds())
	if err != nil && apierr.KindOf(err) == apierr.Internal && !gone(r, err) {
		rec.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
}

// gone reports whether a request failed because its client went away.
func gone(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, context.Canceled)
}

// method is a request's method as a label. A client may send any word as its method, and every
// new label value takes memory for ever.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return r.Method
	}
	return "other"
}

// recorder remembers how a request was answered.
type recorder struct {
	middleware.WrapResponseWriter
	log     *slog.Logger
	seconds *prometheus.HistogramVec

	talked bool   // each question of a talk is measured by itself
	err    error  // the error that Error was called with
	stack  string // of a panic
	cutOff bool   // the answer is incomplete and the client must see that
}

// recorderOf finds the recorder below other wrappers, nil outside a NewRouter.
func recorderOf(w http.ResponseWriter) *recorder {
	for {
		switch v := w.(type) {
		case *recorder:
			return v
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return nil
		}
	}
}

func (rec *recorder) panicked(p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		rec.cutOff = true
		return
	}
	rec.stack = string(debug.Stack())
	if rec.Status() != 0 {
		rec.cutOff = true
		return
	}
	Error(rec, fmt.Errorf("panic: %v", p))
}

// Rest returns the end of a request's path, of a pattern with *. Its slashes may be escaped.
func Rest(r *http.Request) string {
	end := chi.URLParam(r, "*")
	if plain, err := url.PathUnescape(end); err == nil {
		return plain
	}
	return end
}
