package login

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

type contextKey struct{}

// Current returns the session of a request that passed Require, else the zero value.
func Current(ctx context.Context) Session {
	session, _ := ctx.Value(contextKey{}).(Session)
	return session
}

// Sender returns the sender of the messages and changes that a request writes which passed Require, "web:…".
func Sender(ctx context.Context) string { return Current(ctx).Login }

// Require passes requests with a valid cookie or with `Authorization: Bearer <secret>`. Pages are
// redirected to the login and back, all else is answered 401.
func (l *Login) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, err := l.identify(r)
		switch {
		case err != nil:
			httpx.Error(w, err)
		case session.Login != "":
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, session)))
		case isPage(r):
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			httpx.Error(w, apierr.New(apierr.Unauthorized,
				"log in at /login, or send the header Authorization: Bearer with the shared secret"))
		}
	})
}

func (l *Login) identify(r *http.Request) (Session, error) {
	if httpx.HasSecret(r, l.cfg.Secret) {
		return Session{Login: msg.WebOperator}, nil
	}
	return l.session(r)
}

// isPage reports whether a browser opens a page, as opposed to scripts and programs.
func isPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(r.Header.Get("Accept"), "text/html")
}

const (
	// home is the page after a login that did not start from another page.
	home = "/chat/"
	// maxNext is the longest path to come back to, in bytes.
	maxNext = 2048
)

// localPath returns next if it is a path on this host, else home. It is stricter than a URL parser,
// because browsers take \ for / and drop tabs and newlines, so that `/\t/host` is another host.
func localPath(next string) string {
	switch {
	case !strings.HasPrefix(next, "/"), strings.HasPrefix(next, "//"), len(next) > maxNext:
		return home
	case strings.ContainsFunc(next, func(c rune) bool { return c == '\\' || c < ' ' || c == 0x7f }):
		return home
	}
	if parsed, err := url.Parse(next); err != nil || parsed.Scheme != "" || parsed.Host != "" {
		return home
	}
	return next
}
