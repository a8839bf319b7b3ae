package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// firstGroup is registered when there is no group at all, so that there is somebody to talk to.
const firstGroup = "main"

// announce waits until the essential services are ready and prints where to log in.
func (l *launcher) announce(ctx context.Context, start []service) error {
	for _, s := range start {
		if !s.essential() {
			continue
		}
		if err := call(ctx, client(s.ready, ""), http.MethodGet, "/readyz", nil, nil); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	secret, err := l.cfg.Secret()
	if err != nil {
		return err
	}
	page, err := firstPage(ctx, client(l.cfg.RoutdAddr, secret))
	if err != nil {
		return fmt.Errorf("routd: %w", err)
	}
	link, err := l.loginLink(ctx, client(l.cfg.DashdAddr, secret), page)
	if err != nil {
		return fmt.Errorf("dashd: %w", err)
	}
	l.ready.Store(true)
	fmt.Fprintf(l.out, "arizuko ready: %s\n", link)
	return nil
}

// firstPage is where a login leads: the chat of the first group, or the list of the groups
// that somebody has registered instead.
func firstPage(ctx context.Context, routd *httpx.Client) (string, error) {
	var known struct {
		Groups []msg.Group `json:"groups"`
	}
	if err := call(ctx, routd, http.MethodGet, "/v1/groups", nil, &known); err != nil {
		return "", err
	}
	if len(known.Groups) == 0 {
		group := map[string]string{"folder": firstGroup}
		return "/chat/" + firstGroup, call(ctx, routd, http.MethodPost, "/v1/groups", group, nil)
	}
	if slices.ContainsFunc(known.Groups, func(g msg.Group) bool { return g.Folder == firstGroup }) {
		return "/chat/" + firstGroup, nil
	}
	return "/chat/", nil
}

// loginLink is a link that logs in by itself, or the login form if there is a password.
func (l *launcher) loginLink(ctx context.Context, dashd *httpx.Client, page string) (string, error) {
	var link struct {
		URL string `json:"url"`
	}
	err := call(ctx, dashd, http.MethodPost, "/v1/login-link", nil, &link)
	if err == nil {
		return link.URL + "&next=" + page, nil
	}
	if apierr.KindOf(err) == apierr.Conflict {
		return string(l.cfg.PublicURL.Or(l.cfg.DashdAddr)) + "/login?next=" + page, nil
	}
	return "", err
}

// client calls one of our daemons where it listens, whatever URL others call it by.
func client(addr config.Addr, secret string) *httpx.Client {
	return httpx.NewClient(string(addr.URL()), secret)
}

// call repeats a request for as long as the daemon is not available.
func call(ctx context.Context, c *httpx.Client, method, path string, in, out any) error {
	for {
		err := c.Do(ctx, method, path, in, out)
		if apierr.KindOf(err) != apierr.Unavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
