package runtime

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxPipe is the largest size of a pipe without privileges, Linux's default
// /proc/sys/fs/pipe-max-size.
const maxPipe = 1 << 20

// output reads one of an agent's output pipes. It does not wait for end of file: a
// process that left the group may hold the pipe open for ever.
type output struct {
	file  *os.File
	ended bool // the agent has exited; set by the reading side
	left  int  // bytes still taken after that

	mu      sync.Mutex // held while bytes are taken from the pipe
	waiting bool       // all that was taken is used, and Read waits for more
}

func newOutput(file *os.File) *output { return &output{file: file, left: maxPipe} }

// finish reports that the agent has exited. All that it wrote is in the pipe by
// now: from here on Read returns that much without waiting, then io.EOF.
func (o *output) finish() { _ = o.file.SetReadDeadline(time.Unix(1, 0)) }

func (o *output) close() { _ = o.file.Close() }

func (o *output) Read(b []byte) (int, error) {
	if !o.ended {
		n, err := o.readWaiting(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.ended = true
		if err := o.file.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	n, err := o.readAvailable(b[:min(len(b), o.left)])
	o.left -= n
	return n, err
}

// readWaiting waits until the pipe has bytes.
func (o *output) readWaiting(b []byte) (n int, err error) {
	conn, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	o.setWaiting(true)
	defer o.setWaiting(false)
	waitErr := conn.Read(func(fd uintptr) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		n, err = read(fd, b)
		if errors.Is(err, unix.EAGAIN) {
			return false
		}
		o.waiting = false
		return true
	})
	switch {
	case waitErr != nil:
		return 0, waitErr
	case err != nil:
		return 0, err
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (o *output) setWaiting(waiting bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = waiting
}

// used reports whether all that was written so far was read and used.
func (o *output) used() bool {
	conn, err := o.file.SyscallConn()
	if err != nil {
		return true // it is closed
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	left := 0
	if err := conn.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
		return true // it is closed
	}
	return o.waiting && left == 0
}

// read is read(2), not interrupted by signals.
func read(fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = unix.Read(int(fd), b); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// readAvailable takes an empty pipe for the end.
func (o *output) readAvailable(b []byte) (n int, err error) {
	conn, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	connErr := conn.Read(func(fd uintptr) bool {
		n, err = read(fd, b)
		return true
	})
	if connErr != nil || err != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}
