package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime/netsetup"
)

// errGone means that the sandbox ended while it was set up; its own exit says why.
var errGone = errors.New("the sandbox has ended")

// connect gives a sandbox that bubblewrap holds its network. up and doors are nil where the
// plan has none.
func (p networkPlan) connect(ctx context.Context, init process) (up *uplink, doors []*door, err error) {
	if p.network == NetworkHost || p.network != NetworkOwn && p.forwards == nil {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := init.await(ctx, init.hasLoopback); err != nil {
		return nil, nil, err
	}
	ns, err := p.enter(ctx, init)
	if err != nil {
		return nil, nil, err
	}
	defer ns.close()
	if p.network == NetworkOwn {
		if up, err = startUplink(p, ns); err != nil {
			return nil, nil, err
		}
		err := up.await(ctx, init)
		if err == nil {
			err = ns.shield(ctx, p.resolvers.servers, p.own)
		}
		if err != nil {
			up.abandon()
			return nil, nil, err
		}
	}
	for i, l := range ns.listeners {
		doors = append(doors, newDoor(l, p.forwards[i]))
	}
	ns.listeners = nil
	return up, doors, nil
}

// namespace is a sandbox's network as other programs find it, by a process of ours that
// has no privileges: they may not look at bubblewrap.
type namespace struct {
	userns    string   // the namespace of users that it belongs to, "" if it is gated's own
	owner     *os.File // userns leads to it; nil without
	inside    []string // the command line up to the arguments of gated's own program
	program   *os.File // that program: its path may be closed to the namespace's users
	marks     []string // see networkPlan
	holder    *exec.Cmd
	conn      *net.UnixConn // the holder's stdin and stdout; its end ends the holder
	listeners []net.Listener
}

func (n *namespace) path() string { return procPath(n.holder.Process.Pid, "ns/net") }

func (n *namespace) close() {
	n.endHolder()
	for _, l := range n.listeners {
		_ = l.Close()
	}
	closeAll([]*os.File{n.owner, n.program})
}

func (n *namespace) endHolder() {
	if n.conn != nil {
		_ = n.conn.Close()
		_ = n.holder.Wait()
		n.conn = nil
	}
}

// enter starts the holder, which opens the listeners of the doors.
func (p networkPlan) enter(ctx context.Context, init process) (n *namespace, err error) {
	n = &namespace{marks: p.marks}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return n, setupError("nsenter is not installed, which sets up the network of sandboxes: install util-linux: %w",
			err)
	}
	args := []string{"--net=" + procPath(init.pid, "ns/net")}
	if n.owner, err = networkOwner(init.pid); err != nil {
		return n, err
	}
	if n.owner != nil {
		n.userns = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.owner.Fd())
		args = append(args, "--preserve-credentials", "--user="+n.userns)
	}
	var listen []string
	for _, address := range p.forwards {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return n, err
		}
		listen = append(listen, net.JoinHostPort("127.0.0.1", port))
	}
	if n.program, err = os.Open(self); err != nil {
		return n, err
	}
	n.inside = append([]string{nsenter}, append(args, "--", "/proc/self/fd/3")...)
	n.holder = n.command(ctx, netsetup.Hold(listen))
	return n, n.start(len(listen))
}

// command is gated's own program inside the namespace.
func (n *namespace) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, n.inside[0], append(n.inside[1:len(n.inside):len(n.inside)], args...)...)
	cmd.Env, cmd.WaitDelay, cmd.ExtraFiles = append([]string{}, n.marks...), time.Second, []*os.File{n.program}
	return cmd
}

// shield makes this machine's addresses unreachable, as a daemon that listens on all of them
// listens on the outside ones too, and the metadata services of clouds.
func (n *namespace) shield(ctx context.Context, servers, own []netip.Addr) error {
	hosts := slices.DeleteFunc(slices.Clone(own), netip.Addr.IsLoopback)
	cmd := n.command(ctx, netsetup.Shield(gatewayMAC, servers, hosts))
	if out, err := cmd.CombinedOutput(); err != nil {
		return &MachineError{fmt.Errorf("close this machine's addresses to the sandbox: %w: %.500s", err,
			strings.TrimSpace(string(out)))}
	}
	return nil
}

// start starts the holder and returns when it has set the network up.
func (n *namespace) start(listeners int) error {
	conn, theirs, err := socketpair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	var said bytes.Buffer
	n.holder.Stdin, n.holder.Stdout, n.holder.Stderr = theirs, theirs, &said
	if err := n.holder.Start(); err != nil {
		return errors.Join(err, conn.Close())
	}
	n.conn = conn
	_ = theirs.Close() // its end is seen when the holder ends
	for len(n.listeners) < listeners && err == nil {
		var l net.Listener
		if l, err = receiveListener(conn); err == nil {
			n.listeners = append(n.listeners, l)
		}
	}
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, len(netsetup.Done)))
	}
	if err != nil {
		n.endHolder()
		return &MachineError{fmt.Errorf("set up the sandbox's network: %w: %.500s", err,
			strings.TrimSpace(said.String()))}
	}
	return nil
}

func socketpair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	file, theirs := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

// receiveListener takes a listener, which the holder passes before it is done.
func receiveListener(from *net.UnixConn) (net.Listener, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := from.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no listener was passed"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer file.Close()
	return net.FileListener(file)
}

// hasLoopback reports whether bubblewrap has set up the namespaces of users and of
// network, as far as another program may find them unfinished.
func (p process) hasLoopback() (bool, error) {
	for file, want := range map[string]string{"uid_map": " ", "gid_map": " ", "net/fib_trie": "127.0.0.1"} {
		text, err := os.ReadFile(procPath(p.pid, file))
		if err != nil || !strings.Contains(string(text), want) {
			return false, err
		}
	}
	return true, nil
}

// hasDefaultRoute reports whether the sandbox has a way out: pasta, which carries IPv4 alone, does not tell.
func (p process) hasDefaultRoute() (bool, error) {
	text, err := os.ReadFile(procPath(p.pid, "net/route"))
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == "00000000" {
			return true, nil
		}
	}
	return false, err
}

// await waits for a condition of a sandbox. It returns errGone if the sandbox ends.
func (p process) await(ctx context.Context, met func() (bool, error)) error {
	poll := time.NewTicker(networkPoll)
	defer poll.Stop()
	for {
		ok, err := met()
		if ok {
			return nil
		}
		if !p.alive() {
			return errGone
		}
		if err != nil {
			return err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return &MachineError{fmt.Errorf("the sandbox has no network: %w", ctx.Err())}
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
