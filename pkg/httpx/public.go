package httpx

import (
	"net"
	"net/netip"
	"slices"
)

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

// RealAddr is the address that a connection to addr leads to: of IPv4, if that is mapped or translated.
func RealAddr(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}

// IsPublic reports whether an address belongs to another machine of the public internet.
func IsPublic(addr netip.Addr) bool {
	addr = RealAddr(addr)
	if addr.Is6() && !global.Contains(addr) ||
		slices.ContainsFunc(reserved, func(prefix netip.Prefix) bool { return prefix.Contains(addr) }) {
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
