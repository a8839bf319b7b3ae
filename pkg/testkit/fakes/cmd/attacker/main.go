// Attacker is an agent for tests that tries to read and write forbidden files. It reads one order
// a line and answers each with a frame: "ok" and the result, or "no" and the error.
//
//	read PATH     the file's content
//	list PATH     the folder's names
//	write PATH    a file there; the answer is empty
//	mkdir PATH    a folder there, and those above it
//	rename A B    moves a file or folder
//	link A B      makes B a symbolic link to A
//	files         pipes and files it has open besides the three it was given
//	env NAME      the variable
//	signal PID    whether there is such a process to be signalled
//	trace PID     attaches to the process as a debugger, and lets it go
//	dial ADDR     connects by TCP and reads; unix:NAME connects to an abstract socket, udp:ADDR sends a datagram first,
//	              vsock:PORT connects to the hypervisor and to this machine itself
//	dial-any ADDR…  the same with all at once: the addresses that can be reached, with what was read
//	talk ADDR TEXT  sends a text by TCP, with escapes as \r and with AUTH for how it logs in at its proxy, and reads
//	raw ADDR      sends to an IPv4 address by raw sockets, frames and echo requests: those that were sent
//	bound ADDR…   connects and sends a datagram to each, by sockets that are bound to a device other than
//	              loopback: what was answered
//	listen ADDR   accepts connections and writes "agent" to each
//	resolve NAME  its addresses
//	chmod PATH    makes it executable for all, with the rights of its owner
//	memory MIB    takes that much of it
//	detach NAME   starts a child in a session of its own that only SIGKILL ends; NAME is its argument
//	catch-term      answers SIGTERM with a last frame, "terminated", and exits
//	ignore-term    ignores SIGTERM, and the end of its input
//	exit CODE     ends
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/agentproto"
)

const detach = "detach"

func main() {
	if len(os.Args) > 1 && os.Args[1] == detach {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		forever()
	}
	ignoresTerm := false
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		order, what, _ := strings.Cut(orders.Text(), " ")
		ignoresTerm = ignoresTerm || order == "ignore-term"
		found, err := obey(order, what)
		if err != nil {
			say("no " + err.Error())
		} else {
			say("ok " + found)
		}
	}
	if ignoresTerm {
		forever()
	}
}

// forever waits for a signal that is never sent; Go would take an empty select for a
// deadlock.
func forever() {
	usr1 := make(chan os.Signal, 1)
	signal.Notify(usr1, syscall.SIGUSR1)
	<-usr1
}

func obey(order, what string) (string, error) {
	switch order {
	case "read":
		b, err := os.ReadFile(what)
		return string(b), err
	case "list":
		return list(what)
	case "write":
		return "", os.WriteFile(what, []byte("attacked"), 0o600)
	case "mkdir":
		return "", os.MkdirAll(what, 0o700)
	case "rename":
		from, to, _ := strings.Cut(what, " ")
		return "", os.Rename(from, to)
	case "link":
		to, name, _ := strings.Cut(what, " ")
		return "", os.Symlink(to, name)
	case "files":
		return files()
	case "chmod":
		return "", os.Chmod(what, 0o755|os.ModeSetuid)
	case "dial":
		return dial(what)
	case "dial-any":
		return dialAny(strings.Fields(what))
	case "bound":
		return bound(strings.Fields(what))
	case "talk":
		addr, text, _ := strings.Cut(what, " ")
		return talk(addr, text)
	case "raw":
		return raw(what)
	case "listen":
		return "", listen(what)
	case "resolve":
		addrs, err := net.LookupHost(what)
		return strings.Join(addrs, " "), err
	case "env":
		return os.Getenv(what), nil
	}
	return "", obeyProcess(order, what)
}

// obeyProcess obeys orders about processes.
func obeyProcess(order, what string) error {
	switch order {
	case "signal", "trace", "exit":
		n, err := strconv.Atoi(what)
		switch {
		case err != nil:
			return err
		case order == "signal":
			return syscall.Kill(n, 0)
		case order == "trace":
			return trace(n)
		}
		os.Exit(n)
	case "memory":
		return fill(what)
	case detach:
		child := exec.Command("/proc/self/exe", detach, what)
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return child.Start()
	case "catch-term":
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		go func() {
			<-terminated
			say("terminated")
			os.Exit(0)
		}()
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
	default:
		return fmt.Errorf("no such order %q", order)
	}
	return nil
}

func trace(pid int) error {
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	if err := syscall.PtraceAttach(pid); err != nil {
		return err
	}
	var status syscall.WaitStatus
	_, err := syscall.Wait4(pid, &status, syscall.WALL, nil) // it has stopped
	return errors.Join(err, syscall.PtraceDetach(pid))
}

func list(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " "), err
}

// files leaves out those that Go itself opens.
func files() (string, error) {
	open, err := os.ReadDir("/proc/self/fd")
	var others []string
	for _, f := range open {
		to, err := os.Readlink("/proc/self/fd/" + f.Name())
		ours := strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/sys/fs/cgroup/")
		if fd, _ := strconv.Atoi(f.Name()); fd > 2 && err == nil && !ours {
			others = append(others, to)
		}
	}
	return strings.Join(others, " "), err
}

func dial(addr string) (string, error) {
	network := "tcp"
	switch kind, rest, _ := strings.Cut(addr, ":"); kind {
	case "unix":
		network, addr = kind, "@"+rest
	case "udp":
		network, addr = kind, rest
	case "vsock":
		return dialVsock(rest)
	}
	conn, err := net.DialTimeout(network, addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if network == "udp" {
		said := make([]byte, 100)
		n, err := conn.Write([]byte("agent"))
		if err == nil {
			n, err = conn.Read(said)
		}
		return string(said[:n]), err
	}
	said, err := io.ReadAll(conn)
	return string(said), err
}

// dialVsock tries the sockets between virtual machines, which belong to no network namespace. That there are any is
// enough: what listens behind them differs.
func dialVsock(port string) (string, error) {
	number, err := strconv.ParseUint(port, 10, 32)
	if err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	said := "a socket"
	for _, cid := range []uint32{unix.VMADDR_CID_HOST, unix.VMADDR_CID_LOCAL} {
		err := unix.Connect(fd, &unix.SockaddrVM{CID: cid, Port: uint32(number)})
		said += fmt.Sprintf(", to %d: %v", cid, err)
	}
	return said, nil
}

func talk(addr, text string) (string, error) {
	text, err := strconv.Unquote(`"` + text + `"`)
	if err != nil {
		return "", err
	}
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		return "", err
	}
	password, _ := proxy.User.Password()
	auth := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, strings.ReplaceAll(text, "AUTH", "Proxy-Authorization: Basic "+auth)); err != nil {
		return "", err
	}
	said, err := io.ReadAll(conn)
	return string(said), err
}

// raw tries what is sent past TCP and UDP.
func raw(addr string) (string, error) {
	to := &unix.SockaddrInet4{}
	copy(to.Addr[:], net.ParseIP(addr).To4())
	echo := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}
	var sent []string
	for _, s := range []struct {
		name               string
		domain, kind, what int
		to                 unix.Sockaddr
	}{
		{"IPv4", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, to},
		{"any protocol", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, to},
		{"IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6, &unix.SockaddrInet6{Addr: [16]byte{0: 0xff, 1: 2, 15: 1}}},
		{"frame", unix.AF_PACKET, unix.SOCK_RAW, 0x300, &unix.SockaddrLinklayer{Ifindex: 1, Halen: 6}},
		{"echo", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, to},
	} {
		fd, err := unix.Socket(s.domain, s.kind|unix.SOCK_CLOEXEC, s.what)
		if err != nil {
			continue
		}
		if unix.Sendto(fd, echo, 0, s.to) == nil {
			sent = append(sent, s.name)
		}
		unix.Close(fd)
	}
	if sent == nil {
		return "", errors.New("nothing was sent")
	}
	return strings.Join(sent, ", "), nil
}

func dialAny(addrs []string) (string, error) {
	reached := make(chan string)
	for _, addr := range addrs {
		go func() {
			said, err := dial(addr)
			if err != nil {
				reached <- ""
			} else {
				reached <- addr + "=" + said
			}
		}()
	}
	var all []string
	for range addrs {
		if said := <-reached; said != "" {
			all = append(all, said)
		}
	}
	if len(all) == 0 {
		return "", errors.New("none can be reached")
	}
	return strings.Join(all, " "), nil
}

// bound tries both ways to pass the local routes over: SO_BINDTODEVICE, and IP_PKTINFO for a datagram.
func bound(addrs []string) (string, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	var all []string
	for _, device := range devices {
		if device.Flags&net.FlagLoopback != 0 {
			continue
		}
		dialer := net.Dialer{Timeout: time.Second, Control: func(_, _ string, c syscall.RawConn) (err error) {
			if e := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), device.Name) }); e != nil {
				return e
			}
			return err
		}}
		for _, network := range []string{"tcp", "udp"} {
			for _, addr := range addrs {
				if said, err := exchange(dialer, network, strings.ReplaceAll(addr, "DEVICE", device.Name)); err == nil {
					all = append(all, network+" "+addr+"="+said)
				}
			}
		}
		for _, addr := range addrs {
			sendBy(device.Index, addr)
		}
	}
	if len(all) == 0 {
		return "", errors.New("no answer")
	}
	return strings.Join(all, " "), nil
}

func exchange(dialer net.Dialer, network, addr string) (string, error) {
	conn, err := dialer.Dial(network, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := conn.Write([]byte("bound")); err != nil {
		return "", err
	}
	b := make([]byte, 100)
	n, err := conn.Read(b)
	if err != nil && network == "udp" {
		return "", err
	}
	return string(b[:n]), nil
}

// sendBy sends a datagram to an IPv4 address by a device.
func sendBy(device int, addr string) {
	to, err := net.ResolveUDPAddr("udp4", addr)
	if err != nil {
		return
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	control := binary.NativeEndian.AppendUint64(nil, uint64(syscall.SizeofCmsghdr+syscall.SizeofInet4Pktinfo))
	control = binary.NativeEndian.AppendUint32(control, syscall.IPPROTO_IP)
	control = binary.NativeEndian.AppendUint32(control, syscall.IP_PKTINFO)
	control = binary.NativeEndian.AppendUint32(control, uint32(device))
	control = append(control, make([]byte, 12)...) // no source; aligned
	sa := &syscall.SockaddrInet4{Port: to.Port}
	copy(sa.Addr[:], to.IP.To4())
	_ = syscall.Sendmsg(fd, []byte("pktinfo"), control, sa, 0)
}

func listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("agent"))
			_ = conn.Close()
		}
	}()
	return nil
}

func fill(mib string) error {
	n, err := strconv.Atoi(mib)
	if err != nil {
		return err
	}
	memory := make([]byte, n<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	return nil
}

func say(result string) {
	if err := agentproto.WriteFrame(os.Stdout, agentproto.Frame{Status: agentproto.StatusOK,
		Result: result}); err != nil {
		os.Exit(3)
	}
}
