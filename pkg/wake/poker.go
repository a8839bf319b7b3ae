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

	mu sync.Mutex
	// The socket for each daemon: the kernel counts unread pokes against the sender's socket, so with a shared one a
	// daemon that hangs would block pokes to the others.
	sockets map[string]int
}

// NewPoker returns a Poker for the daemons whose sockets are in runDir. onError is called with
// unexpected errors, such as a socket without permission, from several goroutines at once.
func NewPoker(runDir string, onError func(daemon string, err error)) *Poker {
	return &Poker{runDir: runDir, onError: onError, sockets: make(map[string]int)}
}

// Poke wakes a daemon. A daemon that is down, or has not read earlier pokes yet, is not an error: it
// reads the database when it starts, or when it reads those pokes.
func (p *Poker) Poke(daemon string) {
	err := p.poke(daemon)
	var errno unix.Errno
	isDown := errors.As(err, &errno) &&
		slices.Contains([]unix.Errno{unix.ECONNREFUSED, unix.ENOENT, unix.ECONNRESET, unix.EPIPE}, errno)
	hasPokes := errno == unix.EAGAIN || errno == unix.ENOBUFS
	if err != nil && !isDown && !hasPokes {
		p.onError(daemon, err)
	}
}

// Close releases the sockets. A Poke after Close opens them again.
func (p *Poker) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fd := range p.sockets {
		_ = unix.Close(fd)
	}
	clear(p.sockets)
}

// poke holds the mutex during system calls, none of which blocks.
func (p *Poker) poke(daemon string) error {
	path, err := socketPath(p.runDir, daemon)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fd, ok := p.sockets[daemon]
	if !ok {
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		p.sockets[daemon] = fd
	}
	return unix.Sendto(fd, []byte{'.'}, unix.MSG_DONTWAIT, &unix.SockaddrUnix{Name: path})
}
