package runtime

import (
	"cmp"
	"errors"
	"net/netip"
	"os/exec"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
)

// Network is the kind of a sandbox's network.
type Network string

// The networks of sandboxes.
const (
	// NetworkOwn reaches the outside world, not this machine's loopback. Its name is
	// that of docker's default network, which does the same.
	NetworkOwn  Network = "bridge"
	NetworkNone Network = "none"
	NetworkHost Network = "host" // this machine's, loopback included
	// NetworkAsk has no way out but the egress proxy, which asks users about what no rule allows.
	NetworkAsk Network = "ask"
)

const (
	// networkTimeout is how long it may take until a sandbox has its network.
	networkTimeout = 15 * time.Second
	// networkPoll is how often it is looked for.
	networkPoll = 2 * time.Millisecond
)

// Check returns an error if there is no such network for sandboxes.
func (n Network) Check() error {
	switch n {
	case NetworkOwn, NetworkNone, NetworkHost, NetworkAsk:
		return nil
	}
	return setupError("AGENT_NETWORK: bubblewrap has bridge, none, ask and host, not %q", string(n))
}

// networkPlan is how a sandbox gets its network.
type networkPlan struct {
	network   Network
	tool      string // the path of slirp4netns or pasta, "" unless the network is its own
	isPasta   bool
	resolvers resolvers
	// forwarded is at which address pasta answers for the name server of this machine;
	// invalid if names are resolved elsewhere. It answers with the gateway's address
	// whatever it was asked at, and only for UDP, port 53.
	forwarded netip.Addr
	// own are this machine's addresses, which the sandbox must not reach.
	own []netip.Addr
	// forwards are addresses of this machine that the agent reaches at the same ports of its own loopback.
	forwards []string
	timeout  time.Duration
	marks    []string // environment entries by which the next gated finds the programs
}

// planNetwork finds the program that connects a sandbox.
func (s Sandbox) planNetwork(spec Spec) (plan networkPlan, err error) {
	plan.network, plan.timeout = cmp.Or(spec.Network, s.Network, NetworkOwn), cmp.Or(s.NetworkTimeout, networkTimeout)
	for _, address := range []string{s.Forward, spec.Proxy} {
		if address != "" {
			plan.forwards = append(plan.forwards, address)
		}
	}
	if plan.network == NetworkAsk && spec.Proxy == "" {
		return plan, setupError("a network of the kind ask needs the egress proxy, which does not run")
	}
	if err := plan.network.Check(); err != nil || plan.network != NetworkOwn {
		return plan, err
	}
	if plan.own, err = ownAddresses(); err != nil {
		return plan, err
	}
	files := s.ResolvConfs
	if files == nil {
		// systemd-resolved keeps the servers that it asks itself in the second one, and names only its own address on
		// loopback in the first.
		files = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}
	}
	if plan.resolvers, err = outsideResolvers(files, plan.own); err != nil {
		return plan, err
	}
	return plan, plan.choose(exec.LookPath, defaultGateway)
}

// choose prefers slirp4netns, which starts sooner and takes less memory. Only pasta can
// ask this machine's own name server without opening its other ports.
func (p *networkPlan) choose(lookPath func(string) (string, error), gateway func() (netip.Addr, error)) error {
	slirp, slirpErr := lookPath("slirp4netns")
	pasta, pastaErr := lookPath("pasta")
	ownOnly := len(p.resolvers.servers) == 0 && len(p.resolvers.closed) > 0
	switch {
	case slirpErr != nil && pastaErr != nil:
		return setupError("neither slirp4netns nor pasta is installed, which connect a sandbox with the network: " +
			"install slirp4netns or passt; only AGENT_NETWORK=host shares this machine's network")
	case !ownOnly && slirpErr == nil:
		p.tool = slirp
		return nil
	case !ownOnly:
		p.tool, p.isPasta = pasta, true
		return nil
	case pastaErr != nil || !slices.Contains(p.resolvers.closed, pastaResolver()):
		return setupError("names are resolved only by %v, which a sandbox cannot reach: name another server in "+
			"/etc/resolv.conf, by IPv4, or let one listen on 127.0.0.1 and install passt; AGENT_NETWORK=host "+
			"shares this machine's network",
			p.resolvers.closed)
	}
	gw, err := gateway()
	if err != nil {
		return &MachineError{err}
	}
	p.tool, p.isPasta, p.forwarded, p.resolvers.servers = pasta, true, gw, []netip.Addr{gw}
	return nil
}

// pastaResolver is the only local name server that Debian 12's pasta can ask.
func pastaResolver() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

// defaultGateway is this machine's for IPv4.
func defaultGateway() (netip.Addr, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	for _, r := range routes {
		if gw, ok := netip.AddrFromSlice(r.Gw.To4()); ok && (r.Dst == nil || r.Dst.IP.IsUnspecified()) {
			return gw, nil
		}
	}
	return netip.Addr{}, errors.Join(errors.New("this machine has no default gateway"), err)
}

// args are bubblewrap's arguments. resolv is the descriptor of the resolv.conf.
func (p networkPlan) args(resolv string) []string {
	switch p.network {
	case NetworkHost:
		return []string{"--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"}
	case NetworkOwn:
		return []string{"--unshare-net", "--perms", "0644", "--ro-bind-data", resolv, "/etc/resolv.conf"}
	}
	return []string{"--unshare-net"}
}
