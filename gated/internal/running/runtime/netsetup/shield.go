package netsetup

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
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
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list the sandbox's routes: %w", err)
	}
	l, err := findLink(routes)
	if err != nil {
		return err
	}
	if err := l.onlyGateway(mac); err != nil {
		return err
	}
	if err := l.allowNames(servers); err != nil {
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
		route := netlink.Route{Dst: ipNet(prefix), Type: unix.RTN_PROHIBIT, Protocol: unix.RTPROT_STATIC}
		if err := netlink.RouteReplace(&route); err != nil {
			return fmt.Errorf("make %s unreachable: %w", prefix, err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// metadata are the addresses at which clouds tell a machine who it is, and give it its credentials. An agent is not the
// machine. All link-local addresses are among them: 169.254.169.254 of nearly all clouds, 169.254.170.2 and .23 of
// containers at Amazon, others elsewhere. IPv6, with fe80::/10 and fd00:ec2::254, does not reach a sandbox.
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

// allowNames lets questions for names through to servers that are metadata services: on some clouds, such as Google's,
// there is no other server.
func (l link) allowNames(servers []string) error {
	for _, text := range servers {
		server, err := netip.ParseAddr(text)
		if err != nil || !slices.ContainsFunc(metadata(), func(p netip.Prefix) bool { return p.Contains(server) }) {
			continue
		}
		to := ipNet(netip.PrefixFrom(server, server.BitLen()))
		err = netlink.RouteReplace(&netlink.Route{
			Dst: to, Gw: l.gateway, LinkIndex: l.index, Table: namesTable, Protocol: unix.RTPROT_STATIC,
		})
		for _, protocol := range []int{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
			rule := netlink.NewRule()
			rule.Dst, rule.Table, rule.Priority = to, namesTable, namesPriority
			rule.IPProto, rule.Dport = protocol, netlink.NewRulePortRange(namesPort, namesPort)
			if e := netlink.RuleAdd(rule); !errors.Is(e, unix.EEXIST) { // a server that is named twice
				err = errors.Join(err, e)
			}
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
	gateway net.IP
	nets    []*net.IPNet // of its other routes
}

// findLink finds the device of the default route and its other routes. Of several
// default routes the first one is used: the kernel lists them by metric.
func findLink(routes []netlink.Route) (l link, err error) {
	isDefault := func(r netlink.Route) bool { return r.Dst == nil || r.Dst.IP.IsUnspecified() }
	i := slices.IndexFunc(routes, isDefault)
	if i < 0 || routes[i].Gw == nil {
		return link{}, errors.New("the sandbox has no default route with a gateway")
	}
	l.index, l.gateway = routes[i].LinkIndex, routes[i].Gw
	for _, r := range routes {
		if r.LinkIndex == l.index && !isDefault(r) {
			l.nets = append(l.nets, r.Dst)
		}
	}
	return l, nil
}

// onlyGateway sends everything to the gateway and asks for no other neighbour.
func (l link) onlyGateway(mac net.HardwareAddr) error {
	for _, dst := range l.nets {
		err := netlink.RouteDel(&netlink.Route{Dst: dst, LinkIndex: l.index, Scope: netlink.SCOPE_NOWHERE})
		if err != nil && !errors.Is(err, unix.ESRCH) { // it is gone already
			return fmt.Errorf("remove the route to %s: %w", dst, err)
		}
	}
	gateway := &net.IPNet{IP: l.gateway, Mask: net.CIDRMask(32, 32)}
	err := netlink.RouteReplace(&netlink.Route{
		Dst: gateway, LinkIndex: l.index, Scope: netlink.SCOPE_LINK, Protocol: unix.RTPROT_STATIC,
	})
	if err != nil {
		return fmt.Errorf("route to the gateway: %w", err)
	}
	err = netlink.NeighSet(&netlink.Neigh{
		LinkIndex: l.index, IP: l.gateway, HardwareAddr: mac, State: netlink.NUD_PERMANENT, Type: unix.RTN_UNICAST,
	})
	if err != nil {
		return fmt.Errorf("fix the gateway's address: %w", err)
	}
	for table, family := range map[string]byte{"arp_cache": unix.AF_INET, "ndisc_cache": unix.AF_INET6} {
		err := l.stopProbes(table, family)
		if err != nil && (family == unix.AF_INET || !errors.Is(err, unix.ENOENT)) { // a device may be without IPv6
			return fmt.Errorf("stop asking for neighbours (%s): %w", table, err)
		}
	}
	return nil
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

// stopProbes keeps the kernel from asking for neighbours on the device. The library has no call for the settings of
// neighbour tables, and those in /proc/sys do not exist in a user namespace.
func (l link) stopProbes(table string, family byte) error {
	request := nl.NewNetlinkRequest(unix.RTM_SETNEIGHTBL, unix.NLM_F_ACK)
	request.AddRawData([]byte{family, 0, 0, 0}) // struct ndtmsg
	request.AddRawData(nl.NewRtAttr(ndtaName, nl.ZeroTerminated(table)).Serialize())
	settings := nl.NewRtAttr(ndtaParms|unix.NLA_F_NESTED, nil)
	settings.AddRtAttr(ndtpaIfindex, nl.Uint32Attr(uint32(l.index)))
	for _, probes := range []int{ndtpaAppProbes, ndtpaUcastProbes, ndtpaMcastProbes} {
		settings.AddRtAttr(probes, nl.Uint32Attr(0))
	}
	request.AddRawData(settings.Serialize())
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
