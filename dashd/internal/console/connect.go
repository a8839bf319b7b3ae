package console

import (
	"cmp"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/checks"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/status"
	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
)

// connect says how a platform gets its token, which only the environment of its daemon has.
func (c *overviewPages) connect(r *http.Request) (*shown, error) {
	p, err := platform(r)
	if err != nil {
		return nil, err
	}
	p.Token = daemon.TokenVariable(p.Daemon)
	daemons, err := c.Status.Daemons(r.Context())
	if err != nil {
		return nil, err
	}
	p.Connected = slices.ContainsFunc(daemons, func(d status.Daemon) bool { return d.Name == p.Daemon && d.OK })
	data := pages.Connect{Platform: p, Profiles: profiles(daemons, p.Daemon)}
	return &shown{title: "Connect " + p.Name, data: data}, nil
}

// platform is the one whose daemon the address names.
func platform(r *http.Request) (pages.Platform, error) {
	name := chi.URLParam(r, "daemon")
	all := platforms()
	i := slices.IndexFunc(all, func(p pages.Platform) bool { return p.Daemon == name })
	if i < 0 {
		return pages.Platform{}, apierr.New(apierr.NotFound, "no adapter is named %.40q", name)
	}
	return all[i], nil
}

// profiles are those of Compose with which an adapter starts beside those that run.
func profiles(daemons []status.Daemon, name string) string {
	var all []string
	for _, a := range daemon.Adapters() {
		if a.Name == name || slices.ContainsFunc(daemons, func(d status.Daemon) bool {
			return d.Name == a.Name && d.Connection != daemon.Stopped
		}) {
			all = append(all, a.Platform)
		}
	}
	return strings.Join(all, ",")
}

// tryToken runs the check of an adapter with tokens from a form. They are given to that program alone, and are neither
// stored nor shown nor logged.
func (c *overviewPages) tryToken(r *http.Request) (next, notice string, err error) {
	p, err := platform(r)
	if err != nil {
		return "/", "", err
	}
	next = "/connect/" + p.Daemon
	environ := slices.DeleteFunc(daemon.Environ("", c.Environ),
		func(entry string) bool { return strings.HasPrefix(entry, "LOG_") })
	var tokens []string
	for _, variable := range p.Secrets {
		token := strings.TrimSpace(r.PostForm.Get(variable))
		if token == "" {
			return next, "", apierr.New(apierr.BadRequest, "Paste %s to try it.", variable)
		}
		if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return next, "", apierr.New(apierr.BadRequest, "%s contains characters that no token has: copy it again.",
				variable)
		}
		tokens = append(tokens, token)
		environ = append(environ, variable+"="+token)
	}
	path := filepath.Join(c.Bin, p.Daemon)
	if _, err := os.Stat(path); err != nil {
		return next, "", apierr.New(apierr.Unavailable,
			"The program %s is not installed beside dashd: set the token as described below, and run `%s check` where %s runs.", p.Daemon,
			p.Daemon, p.Daemon)
	}
	if !c.checking.TryLock() {
		return next, "", apierr.New(apierr.Conflict, "Another token is being tried: try again in a moment.")
	}
	defer c.checking.Unlock()
	result := checks.Run(r.Context(), path, environ)
	redact := func(text string) string {
		return c.Pages.Hide(pages.Printable(config.NewRedactor(tokens...).String(strings.TrimSpace(text))))
	}
	found := redact(result.Out)
	if result.Problem == "" && result.Code == 0 {
		found = strings.TrimSuffix(found, p.Daemon+": ok") // the words of a terminal
		return next, "It works. Now set it as described below.\n" + strings.TrimSpace(found), nil
	}
	failed := redact(cmp.Or(result.Problem, result.Errors))
	failed = strings.ReplaceAll("\n"+failed, "\n"+p.Daemon+": ", "\n") // it begins each line
	return next, "", apierr.New(apierr.BadRequest, "It does not work:%s\n%s", failed, found)
}
