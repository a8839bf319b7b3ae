package wake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Listener receives the pokes of one daemon.
type Listener struct {
	conn   net.PacketConn
	poked  chan struct{}
	closed chan struct{}
}

// Listen creates the daemon's socket in runDir, accessible to its user only, in place of the one
// a former process left. The caller holds the daemon's singleton lock.
func Listen(runDir, daemon string) (*Listener, error) {
	path, err := socketPath(runDir, daemon)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("wake: %w", err)
	}
	conn, err := (&net.ListenConfig{Control: OwnerOnly}).ListenPacket(context.Background(), "unixgram", path)
	if err != nil {
		return nil, fmt.Errorf("wake: %w", err)
	}
	l := &Listener{conn: conn, poked: make(chan struct{}, 1), closed: make(chan struct{})}
	go l.drain()
	return l, nil
}

// OwnerOnly is the Control of a net.ListenConfig that makes sockets in a folder accessible to their owner only: before
// they have a name, which another program could give to another file.
func OwnerOnly(_, _ string, socket syscall.RawConn) error {
	var failed error
	err := socket.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) })
	return errors.Join(err, failed)
}

// C holds one value if there were pokes since the last receive. It is never closed.
func (l *Listener) C() <-chan struct{} { return l.poked }

// Close stops listening. The socket file stays: the next process may have replaced it already.
func (l *Listener) Close() error {
	err := l.conn.Close()
	<-l.closed
	return err
}

func (l *Listener) drain() {
	defer close(l.closed)
	buf := make([]byte, 16) // the content of a poke does not matter
	for {
		if _, _, err := l.conn.ReadFrom(buf); err != nil {
			return // closed: a bound datagram socket has no other way to fail
		}
		select {
		case l.poked <- struct{}{}:
		default:
		}
	}
}
