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

// reserved are addresses that belong to networks of their own, to machines themselves, or to nothing. Metadata services
// of clouds are among them. See the IANA's registries of special-purpose addresses.
var reserved = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // Azure's agent of machines
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

// global is where public addresses of IPv6 are. nat64 has addresses of IPv4 in its last 32 bits.
var (
	global = netip.MustParsePrefix("2000::/3")
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// mayReach reports whether agents may reach an address.
func (p *Proxy) mayReach(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	contains := func(prefix netip.Prefix) bool { return prefix.Contains(addr) }
	if slices.ContainsFunc(p.Allowed, contains) {
		return true
	}
	if addr.Is6() && !global.Contains(addr) || slices.ContainsFunc(reserved, contains) {
		return false
	}
	own, err := net.InterfaceAddrs()
	return err == nil && !slices.ContainsFunc(own, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		ip, _ := netip.AddrFromSlice(network.IP)
		return ip.Unmap() == addr
	})
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
