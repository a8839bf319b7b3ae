package runtime

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"arizuko/pkg/testkit/need"
)

// serveText accepts connections and writes a text to each until the test ends.
func serveText(t *testing.T, l net.Listener, text string) (port string) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(text))
			_ = conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

func listenOn(t *testing.T, network, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// outside is another host: a network namespace at the other end of a link.
type outside struct {
	name     string
	near     string // this machine's address there
	addr     string
	metadata string // one more address of it, link-local, as those of clouds' services for machines
}

// newOutside makes a host. Only root can.
func newOutside(t *testing.T) outside {
	t.Helper()
	need.Root(t)
	need.Program(t, "ip", "iproute2")
	// Addresses for tests of network devices (RFC 2544), other ones for each process.
	subnet := fmt.Sprintf("198.18.%d.", os.Getpid()%250)
	o := outside{name: fmt.Sprintf("out%d", os.Getpid()), near: subnet + "1", addr: subnet + "2", metadata: fmt.Sprintf("169.254.%d.9", os.Getpid()%250+1)}
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v\n%s", args, err, out)
		}
	}
	ip("netns", "add", o.name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", o.name).Run() })
	ip("link", "add", o.name, "type", "veth", "peer", "name", "eth0", "netns", o.name)
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", o.name).Run() })
	ip("addr", "add", subnet+"1/30", "dev", o.name)
	ip("link", "set", o.name, "up")
	ip("-n", o.name, "addr", "add", o.addr+"/30", "dev", "eth0")
	ip("-n", o.name, "link", "set", "eth0", "up")
	ip("-n", o.name, "addr", "add", o.metadata+"/32", "dev", "eth0")
	ip("route", "add", o.metadata+"/32", "via", o.addr, "dev", o.name)
	return o
}

// in runs f in the host's network.
func (o outside) in(t *testing.T, f func() error) {
	t.Helper()
	failed := make(chan error)
	go func() {
		goruntime.LockOSThread() // and never unlocked: the thread ends in that network
		failed <- func() error {
			ns, err := os.Open("/run/netns/" + o.name)
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return f()
		}()
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// repeat sends each datagram back.
func repeat(t *testing.T, conn net.PacketConn) {
	t.Helper()
	servePackets(t, conn, func(sent []byte) []byte { return sent })
}

// serveNames answers every query for an address with 192.0.2.99.
func serveNames(t *testing.T, conn net.PacketConn) {
	t.Helper()
	servePackets(t, conn, answerName)
}

func servePackets(t *testing.T, conn net.PacketConn, answerTo func([]byte) []byte) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	go func() {
		defer close(done)
		for b := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			if answer := answerTo(b[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
}

// answerName is the answer to a query (RFC 1035, section 4).
func answerName(query []byte) []byte {
	end := slices.Index(query[12:], 0) + 12 + 5 // the name, type and class
	if len(query) < end {
		return nil
	}
	answers, isA := byte(0), query[end-3] == 1
	if isA {
		answers = 1
	}
	answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0}, query[12:end]...)
	if isA {
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 99)
	}
	return answer
}
