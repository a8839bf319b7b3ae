package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// firstGroup is registered if there is no group, so that there is one to chat with.
const firstGroup = "main"

// announce waits until the essential services are ready and prints the login link.
func (l *launcher) announce(ctx context.Context, start []service) error {
	for _, s := range start {
		if !s.essential() {
			continue
		}
		if err := call(ctx, l.client(s.name), http.MethodGet, "/readyz", nil, new(httpx.Raw)); err != nil { // a text
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	page, err := firstPage(ctx, l.client("routd"))
	if err != nil {
		return fmt.Errorf("routd: %w", err)
	}
	link, err := l.loginLink(ctx, l.client("dashd"), page)
	if err != nil {
		return fmt.Errorf("dashd: %w", err)
	}
	l.ready.Store(true)
	fmt.Fprintf(l.out, "arizuko ready: %s\n", link)
	l.console.printf("to restart one daemon, such as gated: kill $(head -n1 %s | cut -d' ' -f1)",
		filepath.Join(l.cfg.RunDir(), "gated.lock"))
	return nil
}

// firstPage is the page after a login: the chat with firstGroup, or the list of groups if there are
// only others.
func firstPage(ctx context.Context, routd *httpx.Client) (string, error) {
	var all struct {
		Groups []msg.Group `json:"groups"`
	}
	if err := call(ctx, routd, http.MethodGet, "/v1/groups", nil, &all); err != nil {
		return "", err
	}
	if len(all.Groups) == 0 {
		group := map[string]string{"folder": firstGroup}
		return "/chat/" + firstGroup, call(ctx, routd, http.MethodPost, "/v1/groups", group, nil)
	}
	if slices.ContainsFunc(all.Groups, func(g msg.Group) bool { return g.Folder == firstGroup }) {
		return "/chat/" + firstGroup, nil
	}
	return "/chat/", nil
}

// loginLink is a link with a login token, or the link to the login form if there is a password.
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

// client calls a daemon that it has started, at its socket.
func (l *launcher) client(name string) *httpx.Client { return httpx.NewLocalClient(l.cfg.Socket(name)) }

// call retries a request while the daemon is unavailable.
func call(ctx context.Context, c *httpx.Client, method, path string, in, out any) error {
	for {
		err := c.Do(ctx, method, path, in, out)
		if apierr.KindOf(err) != apierr.Unavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}
