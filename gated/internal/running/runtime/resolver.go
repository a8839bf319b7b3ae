package runtime

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// resolvers is the content of a resolv.conf.
type resolvers struct {
	servers []netip.Addr
	closed  []netip.Addr // servers that a sandbox cannot reach: on this machine, or by IPv6
	options []string     // other lines, such as search domains
}

// outsideResolvers are the name servers of the first file that has any which a sandbox
// reaches. If none has, only those closed to it are set.
func outsideResolvers(files []string, own []netip.Addr) (first resolvers, err error) {
	for i, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return resolvers{}, err
		}
		found := parseResolvConf(string(text), own)
		if len(found.servers) > 0 {
			return found, nil
		}
		if i == 0 {
			first = found
		}
	}
	return first, nil
}

func parseResolvConf(text string, own []netip.Addr) (r resolvers) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#") || strings.HasPrefix(words[0], ";"):
		case words[0] != "nameserver":
			r.options = append(r.options, strings.Join(words, " "))
		case len(words) > 1:
			a, err := netip.ParseAddr(words[1])
			switch {
			case err != nil:
			case isOwn(a, own) || a.Unmap().Is6():
				r.closed = append(r.closed, a)
			default:
				r.servers = append(r.servers, a)
			}
		}
	}
	return r
}

// String is a resolv.conf.
func (r resolvers) String() string {
	var b strings.Builder
	for _, server := range r.servers {
		b.WriteString("nameserver " + server.String() + "\n")
	}
	for _, line := range r.options {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// isOwn reports whether an address is this machine's. An address with a zone is of one
// of its links, which a sandbox does not have.
func isOwn(a netip.Addr, own []netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsUnspecified() || a.Zone() != "" || slices.Contains(own, a)
}

// ownAddresses are the addresses of this machine's interfaces.
func ownAddresses() (own []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own, err
}
