package login

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

const (
	cookieName  = "arizuko"
	sessionLife = 30 * 24 * time.Hour
	// cookieVersion is the prefix of every cookie; change it with the format.
	cookieVersion = "v1"
)

// Revoked stores the sessions that were logged out, at least until they would have expired.
type Revoked interface {
	Add(ctx context.Context, id string, until time.Time) error
	Has(ctx context.Context, id string) (bool, error)
}

// Session is a login, as cookies have it. The zero value is none.
type Session struct {
	ID      string `json:"id"`      // "" for the bearer of the shared secret, whose login does not expire
	Login   string `json:"login"`   // the sender of messages and changes
	Expires int64  `json:"expires"` // unix seconds; 0 with an empty ID
}

func newSession(now time.Time) Session {
	return Session{ID: rand.Text(), Login: msg.WebOperator, Expires: now.Add(sessionLife).Unix()}
}

// signer signs cookies. Their value is version.session.signature, the last two in base64.
type signer struct{ key []byte }

// newSigner derives the key from both, so that changing either ends all sessions.
func newSigner(secret, password string) signer {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("arizuko login cookie\x00" + password))
	return signer{key: mac.Sum(nil)}
}

func (s signer) sign(session Session) string {
	// Strings and a number can always be encoded.
	encoded, _ := json.Marshal(session)
	signed := cookieVersion + "." + base64.RawURLEncoding.EncodeToString(encoded)
	return signed + "." + base64.RawURLEncoding.EncodeToString(s.mac(signed))
}

func (s signer) mac(signed string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(signed))
	return mac.Sum(nil)
}

// verify reads a cookie's value; false if sign did not make it.
func (s signer) verify(value string) (Session, bool) {
	dot := strings.LastIndexByte(value, '.')
	if dot < 0 {
		return Session{}, false
	}
	mac, err := base64.RawURLEncoding.DecodeString(value[dot+1:])
	if err != nil || !hmac.Equal(mac, s.mac(value[:dot])) {
		return Session{}, false
	}
	version, encoded, _ := strings.Cut(value[:dot], ".")
	decoded, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || version != cookieVersion {
		return Session{}, false
	}
	var session Session
	if err := json.Unmarshal(decoded, &session); err != nil || session.ID == "" || session.Login == "" {
		return Session{}, false
	}
	return session, true
}

// session returns the session of the request's cookie, the zero value if there is no valid one. The
// error is of kind unavailable: whether the session was revoked cannot be read.
func (l *Login) session(r *http.Request) (Session, error) {
	// There may be several: browsers send cookies of a parent domain too.
	for _, cookie := range r.CookiesNamed(cookieName) {
		session, ok := l.sessions.verify(cookie.Value)
		if !ok {
			continue
		}
		ok, err := l.checkSession(r.Context(), session)
		if ok || err != nil {
			return session, err
		}
	}
	return Session{}, nil
}

func (l *Login) checkSession(ctx context.Context, s Session) (bool, error) {
	if l.cfg.Now().Unix() >= s.Expires {
		return false, nil
	}
	revoked, err := l.cfg.Revoked.Has(ctx, s.ID)
	if err != nil {
		if ctx.Err() == nil { // else the client went away
			l.cfg.Log.Error("checking a session failed", "err", err)
		}
		return false, apierr.New(apierr.Unavailable, "the login cannot be checked now, try again")
	}
	return !revoked, nil
}

// Valid reports whether a session, of Current, is still valid; event streams check it while they
// run. An error counts as invalid.
func (l *Login) Valid(ctx context.Context, s Session) bool {
	if s.ID == "" {
		return s.Login != ""
	}
	ok, err := l.checkSession(ctx, s)
	return ok && err == nil
}

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
