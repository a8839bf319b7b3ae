package wake

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// Listener receives the pokes of one daemon.
type Listener struct {
	conn   *net.UnixConn
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
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("wake: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		conn.Close()
		return nil, fmt.Errorf("wake: %w", err)
	}
	l := &Listener{conn: conn, poked: make(chan struct{}, 1), closed: make(chan struct{})}
	go l.drain()
	return l, nil
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
		if _, err := l.conn.Read(buf); err != nil {
			return // closed: a bound datagram socket has no other way to fail
		}
		select {
		case l.poked <- struct{}{}:
		default:
		}
	}
}
