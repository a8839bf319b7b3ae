package pages

import (
	"encoding/json"
	"net/http"
	"strings"
)

// maxRefusal is how much of a refusal in JSON is read, in bytes.
const maxRefusal = 8 << 10

// Refusals shows browsers that open a page or send a form a page where a handler answers an error in JSON: an address
// that does not exist, a login that has ended, another site's form. Scripts and programs get the JSON.
func (p *Pages) Refusals(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			next.ServeHTTP(w, r)
			return
		}
		held := &refusal{ResponseWriter: w}
		next.ServeHTTP(held, r)
		if held.status != 0 {
			p.refuse(w, r, held)
		}
	})
}

func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, held *refusal) {
	var answer struct{ Error struct{ Message string } }
	_ = json.Unmarshal(held.body, &answer) // without a message the title says enough
	title, text := "This cannot be done", strings.ReplaceAll(answer.Error.Message, "`", "")
	switch {
	case held.status == http.StatusUnauthorized:
		title, text = "Your login has ended", "Nothing was changed. Log in again, then go back and repeat it."
	case held.status == http.StatusNotFound:
		title = "There is no such page"
	case held.status >= http.StatusInternalServerError:
		title = "This page cannot be shown now"
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		title = "This page cannot be shown"
	}
	w.Header().Del("Content-Length")
	p.Problem(w, r, held.status, title, text)
}

// refusal holds an answer back that is an error in JSON.
type refusal struct {
	http.ResponseWriter
	status int // 0: it is none, and was passed on
	body   []byte
}

// WriteHeader passes the status on, unless it begins an error in JSON.
func (r *refusal) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(r.Header().Get("Content-Type"), "application/json") {
		r.status = status
		return
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write keeps the beginning of an error.
func (r *refusal) Write(b []byte) (int, error) {
	if r.status == 0 {
		return r.ResponseWriter.Write(b)
	}
	r.body = append(r.body, b[:min(len(b), maxRefusal-len(r.body))]...)
	return len(b), nil
}

// Unwrap is for http.ResponseController.
func (r *refusal) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// contentPolicy lets a page load its own files and connect to its own host, and nothing else: text
// that passes as markup by mistake can neither run nor send anything.
const contentPolicy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; manifest-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Secure sets the security headers on every answer of next.
func Secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		// Other hosts learn nothing. Not "no-referrer": with that, forms are posted with
		// "Origin: null", which the check for cross-origin posts has to refuse.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		next.ServeHTTP(w, r)
	})
}
