package runtime

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"arizuko/pkg/testkit/executable"
	"arizuko/pkg/testkit/need"
)

// uplinks are the programs that connect a sandbox, by their Debian packages.
func uplinks() map[string]string {
	return map[string]string{"slirp4netns": "slirp4netns", "pasta": "passt"}
}

// onlyUplink leaves on the PATH the programs that a sandbox takes, with one of the uplinks.
func onlyUplink(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append([]string{"bwrap", "nsenter", "ip"}, names...) {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestSandbox_OwnNetwork_ReachesTheWorldButNotThisMachine(t *testing.T) {
	needBwrap(t)
	attacker := buildAttacker(t)
	for name, debian := range uplinks() {
		need.Program(t, name, debian)
		t.Run(name, func(t *testing.T) {
			onlyUplink(t, name)
			e := newFixture(t, attacker)
			n := network{t, e, sandboxOf(e, attacker)}
			n.resolver("198.51.100.1")
			// Pasta answers for every neighbour: only with it do packets to one get out if the kernel asks for it.
			n.Run("bound sockets", func(t *testing.T) { network{t, e, n.s}.boundSockets() })
			if name != "slirp4netns" { // which is taken where both are there
				need.Verify(t)
			}
			n.notThisMachine("ok nameserver 198.51.100.1\nsearch example\n")
			n.Run("other agents", func(t *testing.T) { network{t, e, n.s}.otherAgents() })
			n.Run("outside", func(t *testing.T) { network{t, e, n.s}.outside() })
		})
	}
}

func sandboxOf(e fixture, attacker string) Sandbox {
	return Sandbox{Temp: e.temp(), Data: e.data, Readable: []string{filepath.Dir(attacker)}}
}

// network tests the network of a sandbox.
type network struct {
	*testing.T
	e fixture
	s Sandbox
}

func (n network) start() agentRun {
	n.Helper()
	return testRuntime{n.s, func(*Spec) {}}.start(n.T, n.e.spec)
}

// resolver makes an address the machine's name server.
func (n *network) resolver(addrs ...string) {
	n.Helper()
	path := filepath.Join(n.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("search example\nnameserver "+strings.Join(addrs, "\nnameserver ")+"\n"), 0o600); err != nil {
		n.Fatal(err)
	}
	n.s.ResolvConfs = []string{path}
}

// notThisMachine checks that nothing that listens here is reached, and how names are resolved.
func (n network) notThisMachine(resolvConf string) {
	loopback := serveText(n.T, listenOn(n.T, "tcp4", "127.0.0.1:0"), "loopback")
	everywhere := serveText(n.T, listenOn(n.T, "tcp", ":0"), "everywhere")
	socket := "arizuko-test-" + strconv.Itoa(os.Getpid())
	serveText(n.T, listenOn(n.T, "unix", "@"+socket), "abstract")
	hosts := []string{"127.0.0.1", "127.0.0.2", "localhost", "::1", "::ffff:127.0.0.1", "0.0.0.0", "10.0.2.2", "10.0.2.3", "10.0.2.100", "fd00::2", "fd00::3", "169.254.1.1", "169.254.169.254"}
	if gw, err := defaultGateway(); err == nil {
		hosts = append(hosts, gw.String())
	}
	own, err := ownAddresses()
	if err != nil {
		n.Fatal(err)
	}
	for _, a := range own {
		hosts = append(hosts, a.String())
	}
	order := "dial-any unix:" + socket
	for _, host := range hosts {
		order += " " + net.JoinHostPort(host, loopback) + " " + net.JoinHostPort(host, everywhere)
	}
	c := n.start()
	c.refused(order)
	if answer := c.ask("read /etc/resolv.conf"); !strings.HasPrefix(answer, resolvConf) {
		n.Errorf("resolv.conf: %q", answer)
	}
	if exit := c.finish(); exit.Code != 0 || exit.Err != nil {
		n.Errorf("exit %+v", exit)
	}
}

// boundSockets pass the local routes over. Nothing may arrive here, answered or not.
func (n network) boundSockets() {
	arrived := make(chan string, 1000)
	l := listenOn(n.T, "tcp", ":0")
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			arrived <- "tcp from " + conn.RemoteAddr().String() + " to " + conn.LocalAddr().String()
			_, _ = conn.Write([]byte("host"))
			_ = conn.Close()
		}
	})
	packets, err := net.ListenPacket("udp", ":"+port)
	if err != nil {
		n.Fatal(err)
	}
	wg.Go(func() {
		for b := make([]byte, 100); ; {
			size, from, err := packets.ReadFrom(b)
			if err != nil {
				return
			}
			arrived <- "udp from " + from.String() + ": " + string(b[:size])
			_, _ = packets.WriteTo([]byte("host"), from)
		}
	})
	order := "bound"
	own, err := ownAddresses()
	if err != nil {
		n.Fatal(err)
	}
	for _, host := range append(own, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.1.2.3"), netip.MustParseAddr("::1"), netip.MustParseAddr("10.0.2.2")) {
		text := host.WithZone("").String()
		if host.IsLinkLocalUnicast() && host.Is6() {
			text += "%DEVICE"
		}
		order += " " + net.JoinHostPort(text, port)
	}
	c := n.start()
	if answer := c.ask(order); !strings.HasPrefix(answer, "no ") {
		n.Errorf("%s: %s", order, answer)
	}
	c.finish()
	_, _ = l.Close(), packets.Close()
	wg.Wait()
	close(arrived)
	for what := range arrived {
		n.Errorf("this machine got %s", what)
	}
}

// otherAgents have ports of their own, which neither this machine nor other agents reach.
func (n network) otherAgents() {
	a := n.start()
	b := network{n.T, n.e, n.s}
	b.e.spec.RunID = 8
	other := b.start()
	a.allowed(map[string]string{"listen 127.0.0.1:28999": "", "listen :28998": ""})
	a.allowed(map[string]string{"dial 127.0.0.1:28999": "agent"})
	other.refused("dial-any 127.0.0.1:28999 127.0.0.1:28998 10.0.2.2:28998 10.0.2.100:28998")
	for _, addr := range []string{"127.0.0.1:28999", "127.0.0.1:28998", "[::1]:28998"} {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			n.Errorf("this machine reaches the agent's %s", addr)
		}
	}
	other.allowed(map[string]string{"listen 127.0.0.1:28999": ""})
}

func (n network) outside() {
	o := newOutside(n.T)
	var port string
	o.in(n.T, func() error {
		l, err := net.Listen("tcp4", "0.0.0.0:0")
		if err != nil {
			return err
		}
		port = serveText(n.T, l, "hello")
		for _, addr := range []string{o.addr, o.metadata} {
			names, err := net.ListenPacket("udp", addr+":53")
			if err != nil {
				return err
			}
			serveNames(n.T, names)
		}
		return nil
	})
	n.resolver("127.0.0.1", o.addr)
	c := n.start()
	c.allowed(map[string]string{"dial " + o.addr + ":" + port: "hello", "resolve host.example.org": "192.0.2.99"})
	c.refused("dial-any " + o.metadata + ":" + port)
	if answer := c.ask("bound " + o.metadata + ":" + port); !strings.HasPrefix(answer, "no ") {
		n.Errorf("by a bound socket: %s", answer)
	}
	n.resolver(o.metadata) // the only one on some clouds
	c = n.start()
	c.allowed(map[string]string{"resolve host.example.org": "192.0.2.99"})
	c.refused("dial-any " + o.metadata + ":" + port)
	for _, network := range []Network{NetworkNone, NetworkHost} {
		n.s.Network = network
		for _, addr := range []string{o.addr, o.metadata} {
			answer := n.start().ask("dial " + addr + ":" + port)
			if reached := answer == "ok hello"; reached != (network == NetworkHost) {
				n.Errorf("%s, %s: %q", network, addr, answer)
			}
		}
	}
}

// TestSandbox_Ask_ReachesTheDoorsAlone: with the network ask there is no way but the doors to the tools and the proxy.
func TestSandbox_Ask_ReachesTheDoorsAlone(t *testing.T) {
	needBwrap(t)
	attacker := buildAttacker(t)
	onlyUplink(t) // none is needed
	e := newFixture(t, attacker)
	s := sandboxOf(e, attacker)
	s.Network = NetworkAsk
	if _, err := s.Start(t.Context(), e.spec); !isSetup(err) || !strings.Contains(err.Error(), "egress proxy") {
		t.Errorf("without a proxy: %v", err)
	}
	tools, proxy := listenOn(t, "tcp4", "127.0.0.1:0"), listenOn(t, "tcp4", "127.0.0.1:0")
	s.Forward, e.spec.Proxy = tools.Addr().String(), proxy.Addr().String()
	n := network{t, e, s}
	n.start().allowed(map[string]string{
		"dial 127.0.0.1:" + serveText(t, tools, "tools"): "tools", "dial 127.0.0.1:" + serveText(t, proxy, "proxy"): "proxy",
	})
	n.notThisMachine("no ")
	n.boundSockets()
	n.Run("outside", func(t *testing.T) { network{t, e, s}.nowhere() })
}

// nowhere checks that nothing is sent to another host or to this one, by whatever kind of socket, and that it would be
// with this machine's network.
func (n network) nowhere() {
	o := newOutside(n.T)
	here, err := net.ListenPacket("udp", ":0")
	if err != nil {
		n.Fatal(err)
	}
	repeat(n.T, here)
	_, port, _ := net.SplitHostPort(here.LocalAddr().String())
	to := []string{"udp:127.0.0.1:" + port, "udp:" + o.near + ":" + port}
	o.in(n.T, func() error {
		for _, addr := range []string{o.addr, o.metadata} {
			l, err := net.Listen("tcp4", addr+":0")
			if err != nil {
				return err
			}
			names, err := net.ListenPacket("udp", addr+":53")
			if err != nil {
				return err
			}
			repeat(n.T, names)
			to = append(to, addr+":"+serveText(n.T, l, "hello"), "udp:"+addr+":53")
		}
		return nil
	})
	c := n.start()
	for _, addr := range append(to, "192.0.2.1:443", "[2001:db8::1]:443", "udp:192.0.2.1:443", "udp:[::1]:"+port, "vsock:1024") {
		c.refused("dial " + addr)
	}
	c.refused("raw "+o.addr, "raw 192.0.2.1", "resolve host.example.org")
	n.s.Network = NetworkHost
	c = n.start()
	for _, addr := range to {
		if answer := c.ask("dial " + addr); !strings.HasPrefix(answer, "ok ") {
			n.Errorf("with this machine's network, %s: %.200q", addr, answer)
		}
	}
}

func TestSandbox_OtherNetworks(t *testing.T) {
	needBwrap(t)
	attacker := buildAttacker(t)
	onlyUplink(t) // none is needed
	e := newFixture(t, attacker)
	port := serveText(t, listenOn(t, "tcp4", "127.0.0.1:0"), "loopback")
	for network, want := range map[Network]string{NetworkNone: "no ", NetworkHost: "ok loopback"} {
		s := sandboxOf(e, attacker)
		s.Network = network
		if err := s.Check(t.Context(), e.spec); err != nil {
			t.Errorf("%s: %v", network, err)
		}
		answer := testRuntime{s, func(*Spec) {}}.start(t, e.spec).ask("dial 127.0.0.1:" + port)
		if !strings.HasPrefix(answer, want) {
			t.Errorf("%s: %q", network, answer)
		}
	}
	for network, want := range map[Network]string{"": "install slirp4netns or passt", "mybridge": "AGENT_NETWORK"} {
		s := sandboxOf(e, attacker)
		s.Network = network
		_, err := s.Start(t.Context(), e.spec)
		checkErr := s.Check(t.Context(), e.spec)
		if !isSetup(err) || !isSetup(checkErr) || !strings.Contains(err.Error(), want) || !strings.Contains(checkErr.Error(), want) {
			t.Errorf("%q: %v, check %v", network, err, checkErr)
		}
	}
}

// uplinksOf finds the processes that connect the sandboxes of a data folder.
func uplinksOf(t *testing.T, data string) (pids []int) {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		st, err := readStat(p.PID)
		mark := Sandbox{Data: data}.ownerPrefix()
		marked := slices.ContainsFunc(environOf(p.PID), func(entry string) bool { return strings.HasPrefix(entry, mark) })
		if err == nil && !dead(st) && marked && st.Comm != "bwrap" {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

func TestUplink_Dies_EndsTheRunWithItsName(t *testing.T) {
	needBwrap(t)
	attacker := buildAttacker(t)
	for name, debian := range uplinks() {
		need.Program(t, name, debian)
		t.Run(name, func(t *testing.T) {
			onlyUplink(t, name)
			e := newFixture(t, attacker)
			c := network{t, e, sandboxOf(e, attacker)}.start()
			c.ask("ignore-term")
			for _, pid := range uplinksOf(t, e.data) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			if _, _, exit := finish(t, c.p); exit.Err == nil || !strings.Contains(exit.Err.Error(), name+" ended during the run") {
				t.Errorf("exit %+v", exit)
			}
		})
	}
}

func TestUplink_HangsOrFails_IsAnError(t *testing.T) {
	need.Verify(t)
	needBwrap(t)
	attacker := buildAttacker(t)
	for name, tt := range map[string]struct {
		script string
		setup  bool
		said   string
	}{
		"fails":           {"echo 'no route'; echo 'No external interface' >&2; exit 1", false, "No external interface"},
		"is not allowed":  {"echo 'open: Permission denied' >&2; exit 1", true, "Permission denied"},
		"says it is done": {"exit 0", false, "cannot connect"},
		"hangs":           {"exec /bin/sleep 100", false, "hangs"},
	} {
		t.Run(name, func(t *testing.T) {
			onlyUplink(t)
			tool := filepath.Join(os.Getenv("PATH"), "slirp4netns")
			executable.Script(t, tool, tt.script)
			e := newFixture(t, attacker)
			n := network{t, e, sandboxOf(e, attacker)}
			n.resolver("198.51.100.1")
			n.s.NetworkTimeout = 2 * time.Second
			_, err := n.s.Start(t.Context(), e.spec)
			want := ClassMachine
			if tt.setup {
				want = ClassSetup
			}
			if ClassOf(err) != want || !strings.Contains(err.Error(), tt.said) || !strings.Contains(err.Error(), "slirp4netns") {
				t.Errorf("%v (%s)", err, ClassOf(err))
			}
			if left, err := os.ReadDir(e.temp()); err == nil && len(left) > 0 {
				t.Errorf("temporary files are left: %v", left)
			}
		})
	}
}

func TestChoose_Uplink(t *testing.T) {
	world, own := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("127.0.0.1")
	stub, gateway := netip.MustParseAddr("127.0.0.53"), netip.MustParseAddr("192.0.2.1")
	for name, tt := range map[string]struct {
		installed []string
		resolvers resolvers
		want      string
		forwarded bool
	}{
		"both":                      {[]string{"slirp4netns", "pasta"}, resolvers{servers: []netip.Addr{world}}, "slirp4netns", false},
		"slirp4netns":               {[]string{"slirp4netns"}, resolvers{servers: []netip.Addr{world}, closed: []netip.Addr{own}}, "slirp4netns", false},
		"pasta":                     {[]string{"pasta"}, resolvers{servers: []netip.Addr{world}}, "pasta", false},
		"no names at all":           {[]string{"slirp4netns", "pasta"}, resolvers{}, "slirp4netns", false},
		"names on this machine":     {[]string{"slirp4netns", "pasta"}, resolvers{closed: []netip.Addr{own}}, "pasta", true},
		"names, slirp4netns":        {[]string{"slirp4netns"}, resolvers{closed: []netip.Addr{own}}, "", false},
		"names at another loopback": {[]string{"slirp4netns", "pasta"}, resolvers{closed: []netip.Addr{stub}}, "", false},
		"nothing":                   {nil, resolvers{servers: []netip.Addr{world}}, "", false},
	} {
		plan := networkPlan{resolvers: tt.resolvers}
		err := plan.choose(func(name string) (string, error) {
			if !slices.Contains(tt.installed, name) {
				return "", exec.ErrNotFound
			}
			return name, nil
		}, func() (netip.Addr, error) { return gateway, nil })
		if plan.tool != tt.want || plan.isPasta != (tt.want == "pasta") || (err == nil) != (tt.want != "") || err != nil && !isSetup(err) {
			t.Errorf("%s: %q, %v", name, plan.tool, err)
		}
		if plan.forwarded.IsValid() != tt.forwarded || tt.forwarded && !slices.Equal(plan.resolvers.servers, []netip.Addr{gateway}) {
			t.Errorf("%s: forwarded at %s, servers %v", name, plan.forwarded, plan.resolvers.servers)
		}
	}
}

func TestOutsideResolvers(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	stub := file("stub", "# systemd's\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch lan\n")
	real := file("real", "nameserver 198.51.100.1\nnameserver fe80::1%eth0\nnameserver 192.0.2.7\nnameserver 2001:db8::1\nsearch lan\n;x\nnonsense\n")
	own := []netip.Addr{netip.MustParseAddr("192.0.2.7")}
	for name, tt := range map[string]struct {
		files  []string
		want   string
		closed int
	}{
		"outside":      {[]string{real, stub}, "nameserver 198.51.100.1\nsearch lan\nnonsense\n", 3},
		"behind stub":  {[]string{stub, real}, "nameserver 198.51.100.1\nsearch lan\nnonsense\n", 3},
		"stub alone":   {[]string{stub, dir + "/gone"}, "options edns0 trust-ad\nsearch lan\n", 1},
		"no file":      {[]string{dir + "/gone"}, "", 0},
		"an empty one": {[]string{file("empty", "")}, "", 0},
	} {
		got, err := outsideResolvers(tt.files, own)
		if err != nil || got.String() != tt.want || len(got.closed) != tt.closed {
			t.Errorf("%s: %q, closed %v, %v", name, got.String(), got.closed, err)
		}
	}
	if _, err := outsideResolvers([]string{dir}, nil); errors.Is(err, os.ErrNotExist) || err == nil {
		t.Errorf("a folder: %v", err)
	}
}
