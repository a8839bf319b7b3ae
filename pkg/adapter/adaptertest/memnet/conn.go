package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxBuffered is how many bytes may be under way in one direction: more than an adapter sends in one call, so that
// a peer that reads nothing does not hold up the write.
const maxBuffered = 4 << 20

// stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed *sync.Cond
	data    []byte
	err     error // of reads, once data is read; of writes at once
	held    bool  // what is written is not readable yet
	read    deadline
	write   deadline
}

// deadline of reads or writes. Its zero value is none.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// set replaces a deadline of the stream, and wakes those who wait when it has passed.
func (s *stream) set(d *deadline, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), s.wake)
	}
	s.changed.Broadcast()
}

// wake takes the lock, so that no waiter is between its check and its wait.
func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.read.passed():
			return 0, os.ErrDeadlineExceeded
		case len(s.data) > 0 && !s.held:
			n := copy(p, s.data)
			s.data = s.data[n:]
			s.changed.Broadcast()
			return n, nil
		case s.err != nil && !s.held:
			return 0, s.err
		}
		s.changed.Wait()
	}
}

func (s *stream) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		room := maxBuffered - len(s.data)
		switch {
		case s.write.passed():
			return n, os.ErrDeadlineExceeded
		case s.err != nil:
			return n, syscall.EPIPE
		case room > 0:
			some := min(room, len(p))
			s.data, p, n = append(s.data, p[:some]...), p[some:], n+some
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
	return n, nil
}

// end lets no more be written. Reads return err once they have read what was written before, or at once if drop.
func (s *stream) end(err error, drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if drop {
		s.data, s.held = nil, false
	}
	if s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
}

// hold keeps what is written from being read, from now on.
func (s *stream) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
}

// conn is one end of a connection.
type conn struct {
	in, out       *stream
	local, remote net.Addr
	closed        func()
}

// pair makes both ends of a connection.
func pair(client, server net.Addr) (atClient, atServer *conn) {
	up, down := newStream(), newStream()
	return &conn{in: down, out: up, local: client, remote: server, closed: func() {}},
		&conn{in: up, out: down, local: server, remote: client, closed: func() {}}
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.Write(p) }

// Close lets the other end read what was written before.
func (c *conn) Close() error {
	c.out.end(io.EOF, false)
	c.in.end(net.ErrClosed, true)
	c.closed()
	return nil
}

// reset breaks the connection for both ends at once.
func (c *conn) reset() {
	c.out.end(syscall.ECONNRESET, true)
	c.in.end(syscall.ECONNRESET, true)
	c.closed()
}

// hold keeps both ends from reading what the other one sends, and from noticing that it has closed.
func (c *conn) hold() {
	c.in.hold()
	c.out.hold()
}

// resetAtFirstByte resets the connection when the other end has begun to write.
func (c *conn) resetAtFirstByte() {
	_, _ = c.Read(make([]byte, 1)) // then the other end is gone
	c.reset()
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(at time.Time) error {
	_ = c.SetReadDeadline(at) // never fails
	return c.SetWriteDeadline(at)
}

func (c *conn) SetReadDeadline(at time.Time) error {
	c.in.set(&c.in.read, at)
	return nil
}

func (c *conn) SetWriteDeadline(at time.Time) error {
	c.out.set(&c.out.write, at)
	return nil
}
