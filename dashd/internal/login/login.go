// Package login protects the dashboard: browsers log in by a one-time link or the password and stay
// logged in for 30 days by a signed cookie; programs send the shared secret.
package login

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"arizuko/dashd/internal/hosts"
	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
)

// maxForm is the largest body of a login form, in bytes: the longest password and the longest
// next path, escaped.
const maxForm = 16 << 10

// Form is the content of the login page.
type Form struct {
	Next     string // path to go to after the login
	Problem  string // why the last attempt failed, in a sentence; "" on the first
	Password bool   // whether there is a password; else only links log in
}

// Config is the configuration of a Login. All fields but Password must be set.
type Config struct {
	Secret   string     // shared with the other daemons, it signs the cookies
	Password string     // "" for one-time links instead
	Base     config.URL // where browsers reach dashd
	Revoked  Revoked
	Form     func(w http.ResponseWriter, status int, f Form) // renders the login page
	Now      func() time.Time
	Log      *slog.Logger
}

// Login authenticates browsers and programs. It is safe for concurrent use.
type Login struct {
	cfg        Config
	sessions   signer
	link       oneTime
	attempts   *attempts
	protection *http.CrossOriginProtection
	secure     bool
}

// New refuses an empty secret and an invalid base URL.
func New(cfg Config) (*Login, error) {
	if cfg.Secret == "" {
		return nil, errors.New("login: no secret to sign with")
	}
	base, err := url.Parse(string(cfg.Base))
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	protection := http.NewCrossOriginProtection()
	// A proxy may rewrite the Host header that origins are compared to.
	if err := protection.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httpx.Error(w, apierr.New(apierr.Forbidden, "requests from other sites are refused"))
	}))
	return &Login{
		cfg:        cfg,
		sessions:   newSigner(cfg.Secret, cfg.Password),
		attempts:   newAttempts(cfg.Password),
		protection: protection,
		secure:     base.Scheme == "https",
	}, nil
}

// Mount adds /login, /logout and /v1/login-link to r.
func (l *Login) Mount(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.Use(l.SameOrigin, middleware.SetHeader("Cache-Control", "no-store"))
		r.Get("/login", l.open)
		// A request that only looks at a link, as of a mail scanner, does not use it up.
		r.Head("/login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		r.Post("/login", l.submit)
		r.Post("/logout", l.logout)
		r.With(httpx.Bearer(l.cfg.Secret)).Post("/v1/login-link", l.loginLink)
	})
}

// SameOrigin refuses requests that other sites make a browser send, except with safe methods.
// Programs, which send no origin, pass.
func (l *Login) SameOrigin(next http.Handler) http.Handler { return l.protection.Handler(next) }

// Link returns the address to log in at: the same one-time link until it is used or has expired,
// then another; with a password the login page.
func (l *Login) Link() string {
	page := string(l.cfg.Base) + "/login"
	if l.cfg.Password != "" {
		return page
	}
	return page + "?token=" + l.link.token(l.cfg.Now())
}

// loginLink answers POST /v1/login-link.
func (l *Login) loginLink(w http.ResponseWriter, _ *http.Request) {
	if l.cfg.Password != "" {
		httpx.Error(w, apierr.New(apierr.Conflict, "DASH_PASSWORD is set: log in with it at %s", l.Link()))
		return
	}
	httpx.JSON(w, http.StatusOK, map[string]string{"url": l.Link()})
}

// open answers GET /login: it uses a link up, or shows the form.
func (l *Login) open(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	token, next := query.Get("token"), localPath(query.Get("next"))
	now := l.cfg.Now()
	session, err := l.session(r)
	switch {
	case err != nil:
		httpx.Error(w, err)
	case session.Login != "":
		// Also for a link that was used before: browsers prefetch pages, and users open them twice.
		l.link.use(token, now)
		http.Redirect(w, r, next, http.StatusSeeOther)
	case token == "" || l.cfg.Password != "":
		l.form(w, http.StatusOK, next, "")
	case l.link.use(token, now): // not limited: 260 random bits are not guessed
		l.enter(w, r, next)
	default:
		l.failed(r)
		l.form(w, http.StatusForbidden, next,
			"This link was used before or has expired: a link works once, within an hour.")
	}
}

// submit answers POST /login, the form with the password.
func (l *Login) submit(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		l.form(w, http.StatusBadRequest, localPath(""), "The form could not be read.")
		return
	}
	next := localPath(r.PostForm.Get("next"))
	if l.cfg.Password == "" {
		l.form(w, http.StatusForbidden, next, "There is no password here, only one-time links.")
		return
	}
	ok, err := l.attempts.try(r.Context(), r.PostForm.Get("password"))
	switch {
	case err != nil: // the client went away
	case !ok:
		l.failed(r)
		l.form(w, http.StatusForbidden, next, "That is not the password.")
	default:
		l.enter(w, r, next)
	}
}

// enter starts a session.
func (l *Login) enter(w http.ResponseWriter, r *http.Request, next string) {
	l.cfg.Log.Info("logged in", "addr", r.RemoteAddr)
	http.SetCookie(w, l.cookie(r, l.sessions.sign(newSession(l.cfg.Now())), sessionLife))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// failed logs a failed attempt, with those before it that were not logged.
func (l *Login) failed(r *http.Request) {
	l.attempts.unlogged.Add(1)
	if l.attempts.logs.AllowN(l.cfg.Now(), 1) {
		l.cfg.Log.Warn("login failed", "addr", r.RemoteAddr, "count", l.attempts.unlogged.Swap(0))
	}
}

// logout answers POST /logout. The cookie is kept when its session cannot be revoked, so that the
// user can try again.
func (l *Login) logout(w http.ResponseWriter, r *http.Request) {
	session, err := l.session(r)
	if err == nil && session.ID != "" {
		err = l.cfg.Revoked.Add(r.Context(), session.ID, time.Unix(session.Expires, 0))
	}
	if err != nil {
		httpx.Error(w, fmt.Errorf("log out: %w", err))
		return
	}
	http.SetCookie(w, l.cookie(r, "", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (l *Login) form(w http.ResponseWriter, status int, next, problem string) {
	l.cfg.Form(w, status, Form{Next: next, Problem: problem, Password: l.cfg.Password != ""})
}

// cookie returns the session's cookie; a negative life deletes it.
func (l *Login) cookie(r *http.Request, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name:     cookieName,
		Value:    value,
		Path:     "/",
		MaxAge:   int(life.Seconds()),
		Secure:   l.secure || hosts.HTTPS(r),
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}
