// Package hosts checks which host requests are made to, and finds the client behind a trusted proxy.
package hosts

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
)

// Hosts knows the names and the proxies of a dashboard.
type Hosts struct {
	// Public is where browsers find it.
	Public config.URL
	// Proxies are the only clients whose X-Forwarded-For and X-Forwarded-Proto count.
	Proxies config.Networks
	// Secret of requests that may be made to any host: the daemons call each other by names of a
	// container network, and a browser does not have the secret.
	Secret string
}

// Check refuses requests to any host but an IP address, localhost, names below localhost and the
// public one. A page of another site can make its own name resolve to this machine, and would then
// be of the dashboard's origin.
func (h *Hosts) Check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.known(r.Host) && !httpx.HasSecret(r, h.Secret) {
			httpx.Error(w, apierr.New(apierr.Forbidden,
				"this address is not the dashboard's: open %s, or set DASH_PUBLIC_URL to the address that "+
					"browsers open, and let a proxy pass the header Host on", h.Public))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *Hosts) known(host string) bool {
	name := hostname(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	public, err := url.Parse(string(h.Public))
	return err == nil && name != "" && name == hostname(public.Host)
}

// hostname returns a host without its port, brackets and last dot, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if bare, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(bare, "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

type contextKey struct{}

// HTTPS reports whether the client reached the dashboard, or the trusted proxy before it, over TLS.
func HTTPS(r *http.Request) bool {
	proxied, _ := r.Context().Value(contextKey{}).(bool)
	return r.TLS != nil || proxied
}

// Forwarded takes the client's address and scheme from the headers of trusted proxies.
func (h *Hosts) Forwarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && h.trusted(peer.Addr()) {
			https := last(r.Header.Values("X-Forwarded-Proto")) == "https"
			r = r.WithContext(context.WithValue(r.Context(), contextKey{}, https))
			r.RemoteAddr = h.client(r.Header.Values("X-Forwarded-For"), r.RemoteAddr)
		}
		next.ServeHTTP(w, r)
	})
}

// client returns the last address that no trusted proxy has: each proxy appends the one that it was
// called from, and anyone may have made up the addresses before that.
func (h *Hosts) client(forwarded []string, peer string) string {
	for _, text := range slices.Backward(strings.Split(strings.Join(forwarded, ","), ",")) {
		addr, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return peer
		}
		peer = netip.AddrPortFrom(addr, 0).String()
		if !h.trusted(addr) {
			return peer
		}
	}
	return peer
}

func (h *Hosts) trusted(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(h.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func last(values []string) string {
	all := strings.Split(strings.Join(values, ","), ",")
	return strings.ToLower(strings.TrimSpace(all[len(all)-1]))
}
