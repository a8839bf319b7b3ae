package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Addr is a TCP address to listen on, "host:port". An empty host means every interface,
// port 0 a free one.
type Addr string

// UnmarshalText returns an error for an address that net.Listen would not accept, and for named ports.
func (a *Addr) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return errors.New("want host:port, as in 127.0.0.1:8080")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	*a = Addr(text)
	return nil
}

// URL is this address for a browser on the same machine; for "every interface" it is
// loopback.
func (a Addr) URL() URL {
	host, port, err := net.SplitHostPort(string(a))
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return URL("http://" + net.JoinHostPort(host, port))
}

// URL is the base of another service: http or https, without a trailing slash.
type URL string

// UnmarshalText returns an error for relative URLs and those with a query, fragment or user.
func (u *URL) UnmarshalText(text []byte) error {
	parsed, err := url.Parse(string(text))
	if err != nil {
		return errors.New("not a URL")
	}
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Host == "":
		return errors.New("want http://host or https://host")
	case parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil:
		return errors.New("want no query, fragment or user")
	}
	*u = URL(strings.TrimRight(string(text), "/"))
	return nil
}

// Or is u, or the URL of addr when u is not set.
func (u URL) Or(addr Addr) URL {
	if u == "" {
		return addr.URL()
	}
	return u
}

// LogFormat is "text" or "json".
type LogFormat string

// UnmarshalText returns an error for other formats.
func (f *LogFormat) UnmarshalText(text []byte) error {
	if s := string(text); s != "text" && s != "json" {
		return errors.New("want text or json")
	}
	*f = LogFormat(text)
	return nil
}

// Operators are the senders that may do everything, "telegram:123,slack:U0AB", as a set of ids.
type Operators map[string]bool

// OperatorProblem says why an entry of OPERATORS is not the id of a sender, "" if it may be one. Ids of
// platforms that are not known here may be anything.
func OperatorProblem(entry string) string {
	platform, id, _ := strings.Cut(entry, ":")
	platform, account, further := strings.Cut(platform, "+")
	isID := func(prefix, chars string) bool { return strings.HasPrefix(id, prefix) && strings.Trim(id, chars) == "" }
	const digits = "0123456789"
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	const lower = "abcdefghijklmnopqrstuvwxyz"
	switch {
	case platform == "" || id == "":
		return "is not platform:user, as in telegram:123"
	case further && (account == "" || strings.Trim(account, digits+lower+"_-") != ""):
		return "has an account that cannot be, as in telegram+work:123"
	case (platform == "telegram" || platform == "discord") && !isID("", digits):
		return "is no id of " + platform + ", which are numbers"
	case platform == "slack" && !isID("U", digits+letters) && !isID("W", digits+letters):
		return "is no member id of slack, as in slack:U0AB"
	}
	return ""
}

// UnmarshalText returns an error that names the first part that is not the id of a sender.
func (o *Operators) UnmarshalText(text []byte) error {
	*o = Operators{}
	if len(text) == 0 {
		return nil
	}
	for part := range strings.SplitSeq(string(text), ",") {
		sender := strings.TrimSpace(part)
		if problem := OperatorProblem(sender); problem != "" {
			return fmt.Errorf("%q %s: such an operator could decide nothing", sender, problem)
		}
		(*o)[sender] = true
	}
	return nil
}

// minPrefix is the shortest prefix of Networks, in bits: that of all private addresses of IPv6, fc00::/7.
const minPrefix = 7

// Networks are IP addresses and networks, "192.0.2.1,10.0.0.0/8".
type Networks []netip.Prefix

// UnmarshalText returns an error that names the first part which is neither.
func (n *Networks) UnmarshalText(text []byte) error {
	*n = nil
	for part := range strings.SplitSeq(string(text), ",") {
		part = strings.TrimSpace(part)
		prefix, err := netip.ParsePrefix(part)
		if addr, invalid := netip.ParseAddr(part); invalid == nil {
			prefix, err = addr.Unmap().WithZone("").Prefix(addr.Unmap().BitLen())
		}
		if err != nil {
			return fmt.Errorf("%q is no IP address and no network as in 10.0.0.0/8", part)
		}
		if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
		}
		if prefix.Bits() < minPrefix {
			return fmt.Errorf("%q has too many addresses: name those that you trust", part)
		}
		*n = append(*n, prefix.Masked())
	}
	return nil
}

// minInterval keeps a typo such as 2ns from using up a core.
const minInterval = 10 * time.Millisecond

// CheckInterval returns an error that names the variable if its interval is below 10 ms.
func CheckInterval(name string, interval time.Duration) error {
	if interval < minInterval {
		return fmt.Errorf("%s: must be at least %s", name, minInterval)
	}
	return nil
}
