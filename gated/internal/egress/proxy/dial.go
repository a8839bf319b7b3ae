package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"arizuko/pkg/httpx"
)

const (
	// alpn is what the proxy speaks, on both sides.
	alpn = "http/1.1"

	dialTimeout = 10 * time.Second
	// answerTimeout is from a request's end to its answer's header: models think long.
	answerTimeout = 20 * time.Minute
	// upstreamIdle is shorter than what most servers allow, so that a connection that is used again is seldom closed.
	upstreamIdle    = 30 * time.Second
	maxIdle         = 64
	maxAnswerHeader = 256 << 10
)

// errAddress is the error for a host that agents don't reach.
var errAddress = errors.New("it is at a private or reserved address, which agents cannot reach " +
	"unless an operator names it in EGRESS_PRIVATE")

// mayReach reports whether agents may reach an address.
func (p *Proxy) mayReach(addr netip.Addr) bool {
	addr = httpx.RealAddr(addr)
	return httpx.IsPublic(addr) ||
		slices.ContainsFunc(p.Allowed, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}

// checkLiteral returns an error for an IP address that agents don't reach, and for localhost. Another name is looked up
// only when something is sent to it: by that, its own name servers would learn what an agent writes into it.
func (p *Proxy) checkLiteral(host string) error {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if addr, err := netip.ParseAddr(host); err == nil && !p.mayReach(addr) {
		return fmt.Errorf("%s: %w", host, errAddress)
	}
	return nil
}

// addresses are those of a host that agents may reach, IPv4 first.
func (p *Proxy) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	all := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		all = append(all, addr)
	} else if all, err = p.Lookup(ctx, "ip", host); err != nil {
		return nil, fmt.Errorf("%s has no address: %w", host, err)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return !p.mayReach(a) })
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", host, errAddress)
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return a.Unmap().BitLen() - b.Unmap().BitLen() })
	return all, nil
}

// dial connects to an address that it has looked up and checked itself, so that a name that changes its address between
// two questions gains nothing.
func (p *Proxy) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	addrs, err := p.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, addr := range addrs {
		var c net.Conn
		if c, failed = p.Dial(ctx, network, net.JoinHostPort(addr.String(), port)); failed == nil {
			return &conn{Conn: c}, nil
		}
	}
	return nil, fmt.Errorf("connect to %s: %w", hostPort, failed)
}

func (t target) dialAddr() string { return net.JoinHostPort(t.host, strconv.Itoa(t.port)) }
