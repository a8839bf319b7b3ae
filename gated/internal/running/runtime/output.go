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
	waiting bool       // the pipe was empty when Read looked last: all that was taken is used
}

func newOutput(file *os.File) *output { return &output{file: file, left: maxPipe} }

// finish reports that the agent has exited. All that it wrote is in the pipe by
// now: from here on Read returns that much without waiting, then io.EOF.
func (o *output) finish() { _ = o.file.SetReadDeadline(time.Unix(1, 0)) }

func (o *output) close() { _ = o.file.Close() }

func (o *output) Read(b []byte) (n int, err error) {
	conn, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	take := func(fd uintptr) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		for {
			if n, err = unix.Read(int(fd), b); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		o.waiting = errors.Is(err, unix.EAGAIN)
		return !o.waiting
	}
	if !o.ended {
		waitErr := conn.Read(take)
		if o.ended = errors.Is(waitErr, os.ErrDeadlineExceeded); !o.ended {
			if err = errors.Join(waitErr, err); err == nil && n == 0 {
				err = io.EOF
			}
			return max(n, 0), err
		}
	}
	b = b[:min(len(b), o.left)]
	if err := conn.Control(func(fd uintptr) { take(fd) }); err != nil || n <= 0 {
		return 0, io.EOF // an empty pipe is at its end
	}
	o.left -= n
	return n, nil
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
