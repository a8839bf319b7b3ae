package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/runtime/netsetup"
)

// Network is what a sandbox has of networks.
type Network string

// The networks of sandboxes.
const (
	// NetworkOwn reaches the outside world, not this machine's loopback. Its name is
	// that of docker's default network, which does the same.
	NetworkOwn  Network = "bridge"
	NetworkNone Network = "none"
	NetworkHost Network = "host" // this machine's, loopback included
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
	case NetworkOwn, NetworkNone, NetworkHost:
		return nil
	}
	return setupError("AGENT_NETWORK: bubblewrap has bridge, none and host, not %q", string(n))
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
}

// planNetwork finds the program that connects a sandbox.
func (s Sandbox) planNetwork() (plan networkPlan, err error) {
	plan.network = cmp.Or(s.Network, NetworkOwn)
	if err := plan.network.Check(); err != nil || plan.network != NetworkOwn {
		return plan, err
	}
	if plan.own, err = ownAddresses(); err != nil {
		return plan, err
	}
	files := s.ResolvConfs
	if files == nil {
		files = resolvConfs()
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
	ownOnly := len(p.resolvers.servers) == 0 && len(p.resolvers.own) > 0
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
	case pastaErr != nil || !slices.Contains(p.resolvers.own, pastaResolver()):
		return setupError("names are resolved only by %v, which is this machine: name another server in /etc/resolv.conf, "+
			"or let one listen on 127.0.0.1 and install passt; AGENT_NETWORK=host shares this machine's network", p.resolvers.own)
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
	text, err := os.ReadFile("/proc/net/route")
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[1] != "00000000" {
			continue
		}
		if gw, err := strconv.ParseUint(words[2], 16, 32); err == nil && gw != 0 {
			var b [4]byte
			binary.NativeEndian.PutUint32(b[:], uint32(gw))
			return netip.AddrFrom4(b), nil
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

// errGone means that the sandbox ended while it was set up; its own exit says why.
var errGone = errors.New("the sandbox has ended")

// connect gives a sandbox that bubblewrap holds its network.
func (p networkPlan) connect(ctx context.Context, init initProcess, runID int64) (*uplink, error) {
	if p.network != NetworkOwn {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, networkTimeout)
	defer cancel()
	if err := init.await(ctx, init.hasLoopback); err != nil {
		return nil, err
	}
	owner, err := networkOwner(init.pid)
	if err != nil {
		return nil, err
	}
	if owner != nil {
		defer owner.Close()
	}
	ns, err := p.forbidOwn(ctx, init, owner)
	if err != nil {
		return nil, err
	}
	defer ns.close()
	up, err := startUplink(p, ns, runID)
	if err != nil {
		return nil, err
	}
	if err := up.await(ctx, init); err != nil {
		up.abandon()
		return nil, err
	}
	return up, nil
}

// namespace is a sandbox's network as other programs find it, by a process of ours that
// has no privileges: they may not look at bubblewrap.
type namespace struct {
	userns string // the namespace of users that it belongs to, "" if it is gated's own
	holder *exec.Cmd
	stdin  io.Closer // ends the holder
}

func (n namespace) path() string { return procPath(n.holder.Process.Pid, "ns/net") }

func (n namespace) close() {
	_ = n.stdin.Close()
	_ = n.holder.Wait()
}

// forbidOwn makes this machine's addresses unreachable in the sandbox: what listens on
// all of them listens on the outside ones, too.
func (p networkPlan) forbidOwn(ctx context.Context, init initProcess, owner *os.File) (n namespace, err error) {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return n, setupError("nsenter is not installed, which closes this machine's addresses to sandboxes: install util-linux: %w", err)
	}
	program, err := os.Open(self)
	if err != nil {
		return n, err
	}
	defer program.Close()
	args := []string{"--net=" + procPath(init.pid, "ns/net")}
	if owner != nil {
		n.userns = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), owner.Fd())
		args = append(args, "--preserve-credentials", "--user="+n.userns)
	}
	args = append(args, "--", "/proc/self/fd/3") // its path may be closed to the namespace's users
	hosts := slices.DeleteFunc(slices.Clone(p.own), netip.Addr.IsLoopback)
	n.holder = exec.CommandContext(ctx, nsenter, append(args, netsetup.Args(hosts)...)...)
	n.holder.Env, n.holder.ExtraFiles = []string{}, []*os.File{program}
	n.holder.WaitDelay = time.Second
	var said bytes.Buffer
	n.holder.Stderr = &said
	stdin, stdinErr := n.holder.StdinPipe()
	stdout, stdoutErr := n.holder.StdoutPipe()
	if err := errors.Join(stdinErr, stdoutErr, n.holder.Start()); err != nil {
		return n, err
	}
	n.stdin = stdin
	done := make([]byte, len(netsetup.Done))
	if _, err := io.ReadFull(stdout, done); err != nil {
		n.close()
		return n, &MachineError{fmt.Errorf("close this machine's addresses to the sandbox: %w: %.500s", err, strings.TrimSpace(said.String()))}
	}
	return n, nil
}

// hasLoopback reports whether bubblewrap has set up the namespaces of users and of
// network, as far as another program may find them unfinished.
func (p initProcess) hasLoopback() (bool, error) {
	for file, want := range map[string]string{"uid_map": " ", "gid_map": " ", "net/fib_trie": "127.0.0.1"} {
		text, err := os.ReadFile(procPath(p.pid, file))
		if err != nil || !strings.Contains(string(text), want) {
			return false, err
		}
	}
	return true, nil
}

// hasDefaultRoute reports whether the sandbox has a way out: pasta does not tell.
func (p initProcess) hasDefaultRoute() (bool, error) {
	text, err := os.ReadFile(procPath(p.pid, "net/route"))
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == "00000000" {
			return true, nil
		}
	}
	if err != nil {
		return false, err
	}
	text, err = os.ReadFile(procPath(p.pid, "net/ipv6_route"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a kernel without IPv6
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, strings.Repeat("0", 32)+" 00 ") && !strings.HasSuffix(strings.TrimSpace(line), " lo") {
			return true, nil
		}
	}
	return false, err
}

// await waits for a condition of a sandbox. It returns errGone if the sandbox ends.
func (p initProcess) await(ctx context.Context, met func() (bool, error)) error {
	poll := time.NewTicker(networkPoll)
	defer poll.Stop()
	for {
		ok, err := met()
		if ok {
			return nil
		}
		if alive, aliveErr := p.alive(); aliveErr == nil && !alive {
			return errGone
		}
		if err != nil {
			return err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return &MachineError{fmt.Errorf("the sandbox has no network after %s: %w", networkTimeout, ctx.Err())}
		}
	}
}

// networkOwner opens the namespace of users that a sandbox's network belongs to, nil if
// it is gated's own.
func networkOwner(pid int) (*os.File, error) {
	network, err := os.Open(procPath(pid, "ns/net"))
	if err != nil {
		return nil, err
	}
	defer network.Close()
	fd, err := unix.IoctlRetInt(int(network.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return nil, fmt.Errorf("find the owner of the sandbox's network: %w", err)
	}
	unix.CloseOnExec(fd)
	owner := os.NewFile(uintptr(fd), "user namespace")
	theirs, err := owner.Stat()
	if err != nil {
		return nil, errors.Join(err, owner.Close())
	}
	if own, err := os.Stat("/proc/self/ns/user"); err != nil || os.SameFile(theirs, own) {
		return nil, errors.Join(err, owner.Close())
	}
	return owner, nil
}
