package wake

import (
	"errors"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Poker pokes other daemons. It is safe for concurrent use and never blocks.
type Poker struct {
	runDir  string
	onError func(daemon string, err error)

	mu    sync.Mutex
	peers map[string]*peer
}

// peer is one daemon. Each has its own socket: the kernel counts unread pokes against the
// sender's socket, so with a shared one a daemon that hangs would block pokes to the others.
type peer struct {
	fd   int
	addr *unix.SockaddrUnix
}

// NewPoker returns a Poker for the daemons whose sockets are in runDir. onError is called with
// unexpected errors, such as a socket without permission, from several goroutines at once.
func NewPoker(runDir string, onError func(daemon string, err error)) *Poker {
	return &Poker{runDir: runDir, onError: onError, peers: make(map[string]*peer)}
}

// Poke wakes a daemon. A daemon that is down, or has not read earlier pokes yet, is not an error: it
// reads the database when it starts, or when it reads those pokes.
func (p *Poker) Poke(daemon string) {
	if err := p.poke(daemon); err != nil && !notThere(err) && !full(err) {
		p.onError(daemon, err)
	}
}

// Close releases the sockets. A Poke after Close opens them again.
func (p *Poker) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range p.peers {
		_ = unix.Close(to.fd)
	}
	clear(p.peers)
}

// poke holds the mutex during system calls, none of which blocks.
func (p *Poker) poke(daemon string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	to, err := p.peer(daemon)
	if err != nil {
		return err
	}
	// Not connected yet, or connected to the socket of a process that has ended: reconnect.
	if err = to.send(); notThere(err) {
		if err = unix.Connect(to.fd, to.addr); err == nil {
			err = to.send()
		}
	}
	return err
}

func (p *Poker) peer(daemon string) (*peer, error) {
	if to, ok := p.peers[daemon]; ok {
		return to, nil
	}
	path, err := socketPath(p.runDir, daemon)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	to := &peer{fd: fd, addr: &unix.SockaddrUnix{Name: path}}
	p.peers[daemon] = to
	return to, nil
}

func (to *peer) send() error {
	poke := [1]byte{'.'}
	_, err := unix.Write(to.fd, poke[:])
	return err
}

// notThere reports whether an error comes from a missing receiver; EPIPE and ECONNRESET come from
// one that ends during the call.
func notThere(err error) bool {
	return isOneOf(err, unix.ENOTCONN, unix.ECONNREFUSED, unix.ENOENT, unix.ECONNRESET, unix.EPIPE)
}

func full(err error) bool { return isOneOf(err, unix.EAGAIN, unix.ENOBUFS) }

func isOneOf(err error, all ...unix.Errno) bool {
	var errno unix.Errno
	return errors.As(err, &errno) && slices.Contains(all, errno)
}
