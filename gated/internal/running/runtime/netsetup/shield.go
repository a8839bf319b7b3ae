package netsetup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shieldNetwork keeps packets from hosts, whatever a program binds its sockets to. A
// socket that is bound to a device (SO_BINDTODEVICE, IP_PKTINFO) passes the local
// addresses over; and where it finds no route, or one of type prohibit, the kernel takes
// the host for a neighbour on the device's link. So there are no neighbours but the
// gateway, whose hardware address is fixed: the kernel asks for no other.
func shieldNetwork(gatewayMAC string, servers, hosts []string) error {
	mac, err := net.ParseMAC(gatewayMAC)
	if err != nil {
		return err
	}
	routes, err := os.ReadFile("/proc/self/net/route")
	if err != nil {
		return err
	}
	device, l, err := readLink(string(routes))
	if err != nil {
		return err
	}
	found, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	l.index = found.Index
	k, err := dial()
	if err != nil {
		return err
	}
	defer k.close()
	if err := l.onlyGateway(k, mac); err != nil {
		return err
	}
	if err := l.allowNames(k, servers); err != nil {
		return err
	}
	forbidden := append(metadata(), netip.MustParsePrefix("127.0.0.0/8"))
	for _, text := range hosts {
		host, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		if host = host.Unmap(); host.Is4() {
			forbidden = append(forbidden, netip.PrefixFrom(host, host.BitLen()))
		}
	}
	for _, prefix := range forbidden {
		if err := k.route(unix.RTM_NEWROUTE, unix.RTN_PROHIBIT, unix.RT_SCOPE_UNIVERSE, prefix, 0); err != nil {
			return fmt.Errorf("make %s unreachable: %w", prefix, err)
		}
	}
	return nil
}

// metadata are the addresses at which clouds tell a machine who it is, and give it its credentials. An agent is not the
// machine. All link-local addresses are among them: 169.254.169.254 of nearly all clouds, 169.254.170.2 and .23 of containers
// at Amazon, others elsewhere. IPv6, with fe80::/10 and fd00:ec2::254, does not reach a sandbox.
func metadata() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
		netip.MustParsePrefix("168.63.129.16/32"),   // Azure's agent of machines
		netip.MustParsePrefix("192.0.0.192/32"),     // Oracle's older machines
	}
}

const (
	// namesTable and namesPriority are of the routes and rules that lead to name servers: before the main table's.
	namesTable, namesPriority = 200, 100
	namesPort                 = 53
)

// allowNames lets questions for names through to servers that are metadata services: on some clouds, such as Google's, there
// is no other server.
func (l link) allowNames(k *kernel, servers []string) error {
	for _, text := range servers {
		server, err := netip.ParseAddr(text)
		if err != nil || !slices.ContainsFunc(metadata(), func(p netip.Prefix) bool { return p.Contains(server) }) {
			continue
		}
		to := attribute(unix.RTA_DST, server.AsSlice())
		route := []byte{unix.AF_INET, 32, 0, 0, namesTable, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, 0, 0, 0, 0}
		route = slices.Concat(route, to, attribute(unix.RTA_GATEWAY, l.gateway.AsSlice()), attribute(unix.RTA_OIF, number(l.index)))
		err = k.request(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, route)
		port := binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, namesPort), namesPort)
		for _, protocol := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
			rule := []byte{unix.AF_INET, 32, 0, 0, namesTable, 0, 0, unix.FR_ACT_TO_TBL, 0, 0, 0, 0}
			rule = slices.Concat(rule, attribute(unix.FRA_DST, server.AsSlice()), attribute(unix.FRA_PRIORITY, number(namesPriority)),
				attribute(unix.FRA_IP_PROTO, []byte{protocol}), attribute(unix.FRA_DPORT_RANGE, port))
			err = errors.Join(err, k.request(unix.RTM_NEWRULE, unix.NLM_F_CREATE, rule))
		}
		if err != nil {
			return fmt.Errorf("let questions for names through to %s: %w", server, err)
		}
	}
	return nil
}

// link is the device that leads out of the namespace.
type link struct {
	index   int
	gateway netip.Addr
	nets    []netip.Prefix // of its other routes
}

// readLink finds the device of the default route and its other routes in the text of
// /proc/net/route. Of several default routes the first one is used: the kernel lists
// them by metric.
func readLink(text string) (device string, l link, err error) {
	nets := map[string][]netip.Prefix{} // by device
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 || words[0] == "Iface" {
			continue
		}
		to, gateway, mask := hexAddr(words[1]), hexAddr(words[2]), hexAddr(words[7])
		if !to.IsUnspecified() {
			ones, _ := net.IPMask(mask.AsSlice()).Size()
			nets[words[0]] = append(nets[words[0]], netip.PrefixFrom(to, ones))
		} else if device == "" {
			device, l.gateway = words[0], gateway
		}
	}
	if device == "" || l.gateway.IsUnspecified() {
		return "", link{}, errors.New("the sandbox has no default route")
	}
	l.nets = nets[device]
	return device, l, nil
}

// hexAddr is an address as /proc/net/route writes it.
func hexAddr(text string) netip.Addr {
	n, _ := strconv.ParseUint(text, 16, 32)
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(n))
	return netip.AddrFrom4(b)
}

// Attributes of neighbour tables, in linux/neighbour.h.
const (
	ndtaName         = 1
	ndtaParms        = 6
	ndtpaIfindex     = 1
	ndtpaAppProbes   = 9
	ndtpaUcastProbes = 10
	ndtpaMcastProbes = 11
)

// onlyGateway sends everything to the gateway and asks for no other neighbour.
func (l link) onlyGateway(k *kernel, mac net.HardwareAddr) error {
	gateway := netip.PrefixFrom(l.gateway, l.gateway.BitLen())
	if err := k.route(unix.RTM_NEWROUTE, unix.RTN_UNICAST, unix.RT_SCOPE_LINK, gateway, l.index); err != nil {
		return fmt.Errorf("route to the gateway: %w", err)
	}
	for _, prefix := range l.nets {
		if prefix == gateway {
			continue
		}
		err := k.route(unix.RTM_DELROUTE, unix.RTN_UNICAST, unix.RT_SCOPE_NOWHERE, prefix, l.index)
		if err != nil && !errors.Is(err, unix.ESRCH) { // it is gone already
			return fmt.Errorf("remove the route to %s: %w", prefix, err)
		}
	}
	neighbour := binary.NativeEndian.AppendUint32([]byte{unix.AF_INET, 0, 0, 0}, uint32(l.index))
	neighbour = binary.NativeEndian.AppendUint16(neighbour, unix.NUD_PERMANENT)
	neighbour = append(neighbour, 0, unix.RTN_UNICAST)
	neighbour = append(append(neighbour, attribute(unix.NDA_DST, l.gateway.AsSlice())...), attribute(unix.NDA_LLADDR, mac)...)
	if err := k.request(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, neighbour); err != nil {
		return fmt.Errorf("fix the gateway's address: %w", err)
	}
	for table, family := range map[string]byte{"arp_cache": unix.AF_INET, "ndisc_cache": unix.AF_INET6} {
		settings := attribute(ndtpaIfindex, number(l.index))
		for _, probes := range []uint16{ndtpaAppProbes, ndtpaUcastProbes, ndtpaMcastProbes} {
			settings = append(settings, attribute(probes, number(0))...)
		}
		body := append([]byte{family, 0, 0, 0}, attribute(ndtaName, append([]byte(table), 0))...)
		body = append(body, attribute(ndtaParms|unix.NLA_F_NESTED, settings)...)
		err := k.request(unix.RTM_SETNEIGHTBL, 0, body)
		if err != nil && (family == unix.AF_INET || !errors.Is(err, unix.ENOENT)) { // a device may be without IPv6
			return fmt.Errorf("stop asking for neighbours (%s): %w", table, err)
		}
	}
	return nil
}

// kernel is a netlink socket for routes.
type kernel struct {
	fd  int
	seq uint32
}

func dial() (*kernel, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return &kernel{fd: fd}, nil
}

func (k *kernel) close() { _ = unix.Close(k.fd) }

// route adds or removes a route of the main table. The device is that of no interface for
// index 0.
func (k *kernel) route(kind uint16, routeType, scope byte, to netip.Prefix, index int) error {
	protocol, flags := byte(unix.RTPROT_STATIC), uint16(unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	if kind == unix.RTM_DELROUTE {
		protocol, flags, routeType = unix.RTPROT_UNSPEC, 0, unix.RTN_UNSPEC
	}
	body := []byte{unix.AF_INET, byte(to.Bits()), 0, 0, unix.RT_TABLE_MAIN, protocol, scope, routeType, 0, 0, 0, 0}
	body = append(body, attribute(unix.RTA_DST, to.Addr().AsSlice())...)
	if index != 0 {
		body = append(body, attribute(unix.RTA_OIF, number(index))...)
	}
	return k.request(kind, flags, body)
}

// attribute is a struct rtattr with its data. All data here but names and hardware
// addresses are of 4 bytes; those are padded.
func attribute(kind uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(data)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func number(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

// request sends a message and returns the kernel's answer.
func (k *kernel) request(kind, flags uint16, body []byte) error {
	k.seq++
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	b = append(binary.NativeEndian.AppendUint32(b, k.seq), 0, 0, 0, 0) // to the kernel
	if err := unix.Sendto(k.fd, append(b, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, os.Getpagesize())
	n, _, err := unix.Recvfrom(k.fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("unexpected answer of netlink")
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
