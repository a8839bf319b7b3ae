package runtime

import (
	"errors"
	"io"
	"os"
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
}

func newOutput(file *os.File) *output { return &output{file: file, left: maxPipe} }

// finish reports that the agent has exited. All that it wrote is in the pipe by
// now: from here on Read returns that much without waiting, then io.EOF.
func (o *output) finish() { _ = o.file.SetReadDeadline(time.Unix(1, 0)) }

func (o *output) close() { _ = o.file.Close() }

func (o *output) Read(b []byte) (int, error) {
	if !o.ended {
		n, err := o.file.Read(b)
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

// readAvailable takes an empty pipe for the end.
func (o *output) readAvailable(b []byte) (n int, err error) {
	conn, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	connErr := conn.Read(func(fd uintptr) bool {
		for {
			if n, err = unix.Read(int(fd), b); !errors.Is(err, unix.EINTR) {
				return true
			}
		}
	})
	if connErr != nil || err != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}
