// Package netsetup makes hosts unreachable in a network namespace and listens there:
// gated runs its own program again in the namespace of a sandbox, as `gated netsetup`,
// before the agent starts. An agent has no right to change that. The process then waits for the end of
// its input, without capabilities, so that other programs may find the namespace by it.
package netsetup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// Name is the subcommand.
const Name = "netsetup"

// SocketFD is the descriptor of a Unix socket by which a listener is passed.
const SocketFD = 4

// Order is what to do.
type Order struct {
	Forbid []netip.Addr // hosts that become unreachable
	// Listen is a TCP address to listen on; "" is none. The listener is passed over
	// SocketFD.
	Listen string
}

// Args are the arguments of the program that calls Intercept.
func (o Order) Args() []string {
	args := []string{Name, o.Listen}
	for _, host := range o.Forbid {
		args = append(args, host.String())
	}
	return args
}

// Done is what the process writes when it is done.
const Done = "done\n"

// Intercept does what the command line says if that is of Args, and does not return
// then. It comes first in main: nothing else has to be set up.
func Intercept() {
	if len(os.Args) < 3 || os.Args[1] != Name {
		return
	}
	goruntime.LockOSThread() // capabilities are of threads, and execve keeps those of its own
	err := listen(os.Args[2])
	if err == nil {
		err = forbid(os.Args[3:])
	}
	if err == nil {
		err = wait()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// wait becomes a shell without capabilities that reports and reads a line.
func wait() error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // behind the last one that this kernel knows
		}
		if err != nil {
			return fmt.Errorf("give up capability %d: %w", c, err)
		}
	}
	return unix.Exec("/bin/sh", []string{"sh", "-c", `printf %s "$0"; read -r _`, Done}, nil)
}

// listen opens the listener and passes it on.
func listen(addr string) error {
	if addr == "" {
		return nil
	}
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		return err
	}
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	// It lives on where it is passed to.
	return errors.Join(unix.Sendmsg(SocketFD, []byte{1}, unix.UnixRights(int(file.Fd())), nil, 0), unix.Close(SocketFD))
}

// forbid adds a route for each host by which the kernel refuses packets to it.
func forbid(hosts []string) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	_, err = os.Stat("/proc/self/net/if_inet6")
	withoutIPv6 := errors.Is(err, fs.ErrNotExist)
	for i, text := range hosts {
		host, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		if host = host.Unmap(); host.Is6() && withoutIPv6 {
			continue
		}
		if err := request(fd, prohibit(host, uint32(i+1))); err != nil {
			return fmt.Errorf("make %s unreachable: %w", host, err)
		}
	}
	return nil
}

// prohibit is a netlink message: a struct nlmsghdr, a struct rtmsg, the destination.
func prohibit(host netip.Addr, seq uint32) []byte {
	family, address := byte(unix.AF_INET), host.AsSlice()
	if host.Is6() {
		family = unix.AF_INET6
	}
	size := unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr + len(address)
	b := binary.NativeEndian.AppendUint32(nil, uint32(size))
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_NEWROUTE)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = append(b, 0, 0, 0, 0) // to the kernel
	b = append(b, family, byte(len(address)*8), 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_PROHIBIT)
	b = append(b, 0, 0, 0, 0) // flags
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(address)))
	b = binary.NativeEndian.AppendUint16(b, unix.RTA_DST)
	return append(b, address...)
}

// request sends a message and returns the kernel's answer.
func request(fd int, message []byte) error {
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, os.Getpagesize())
	n, _, err := unix.Recvfrom(fd, answer, 0)
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
