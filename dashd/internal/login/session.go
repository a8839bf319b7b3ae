package login

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"arizuko/pkg/apierr"
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

// Session is a login. The zero value is none.
type Session struct {
	ID      string    // "" for the bearer of the shared secret, whose login does not expire
	Login   string    // the sender of messages and changes
	Expires time.Time // zero with an empty ID
}

func newSession(now time.Time) Session {
	return Session{ID: rand.Text(), Login: msg.WebOperator, Expires: now.Add(sessionLife)}
}

// payload is a Session in a cookie.
type payload struct {
	ID      string `json:"id"`
	Login   string `json:"login"`
	Expires int64  `json:"expires"` // unix seconds
}

// signer signs cookies. Their value is version.payload.signature, the last two in base64.
type signer struct{ key []byte }

// newSigner derives the key from both, so that changing either ends all sessions.
func newSigner(secret, password string) signer {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("arizuko login cookie\x00" + password))
	return signer{key: mac.Sum(nil)}
}

func (s signer) sign(session Session) string {
	// Strings and a number can always be encoded.
	encoded, _ := json.Marshal(payload{session.ID, session.Login, session.Expires.Unix()})
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
	var p payload
	if err := json.Unmarshal(decoded, &p); err != nil || p.ID == "" || p.Login == "" {
		return Session{}, false
	}
	return Session{ID: p.ID, Login: p.Login, Expires: time.Unix(p.Expires, 0)}, true
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
	if !l.cfg.Now().Before(s.Expires) {
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
