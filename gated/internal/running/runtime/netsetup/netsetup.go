// Package netsetup works inside the network namespace of a sandbox: gated runs its own
// program again there, as `gated netsetup`, before the agent starts. An agent has no
// right to change its settings.
package netsetup

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	goruntime "runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// Name is the subcommand.
	Name = "netsetup"
	// Done is the line that Hold writes when it is done.
	Done = "done\n"

	hold   = "hold"
	shield = "shield"
)

// Hold are the arguments of a process that listens on TCP addresses, passes each listener over its stdin, a Unix
// socket, and waits for the end of that, without capabilities, so that other programs may find the namespace by it.
func Hold(listen []string) []string { return []string{Name, hold, strings.Join(listen, ",")} }

// Shield are the arguments of a process that makes hosts and metadata services unreachable, and the
// namespace's gateway the only host to which it sends anything. gatewayMAC is the address
// that packets to the gateway carry. servers are name servers: of a metadata service that is one
// of them, port 53 stays open.
func Shield(gatewayMAC string, servers, hosts []netip.Addr) []string {
	return append([]string{Name, shield, gatewayMAC, strings.Join(texts(servers), ",")}, texts(hosts)...)
}

func texts(addrs []netip.Addr) (all []string) {
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return all
}

// Intercept carries out the command line if that is of Hold or Shield, and does not
// return then. It comes first in main, before anything else is set up.
func Intercept() {
	if len(os.Args) < 4 || os.Args[1] != Name {
		return
	}
	goruntime.LockOSThread() // capabilities are of threads, and execve keeps those of its own
	var err error
	switch os.Args[2] {
	case hold:
		for addr := range strings.SplitSeq(os.Args[3], ",") {
			err = errors.Join(err, listen(addr))
		}
		if err == nil {
			err = wait()
		}
	case shield:
		err = shieldNetwork(os.Args[3], strings.Split(os.Args[4], ","), os.Args[5:])
	default:
		err = fmt.Errorf("unknown step %q", os.Args[2])
	}
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// wait becomes a shell without capabilities that reports and reads a line.
func wait() error {
	if err := DropBounding(); err != nil {
		return err
	}
	return unix.Exec("/bin/sh", []string{"sh", "-c", `printf %s "$0"; read -r _`, Done}, nil)
}

// DropBounding takes from the calling thread every capability that a program that it becomes could gain.
func DropBounding() error {
	for c := uintptr(0); ; c++ {
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			return nil //nolint:nilerr // there are no more
		}
		if held == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("give up capability %d: %w", c, err)
		}
	}
}

// listen opens a listener and passes it on; "" is none.
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
	return unix.Sendmsg(0, []byte{1}, unix.UnixRights(int(file.Fd())), nil, 0)
}
