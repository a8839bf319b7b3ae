package runtime

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxQueued bounds the bytes that wait for an agent that does not read. One turn
// is at most 256 KiB of messages and their context.
const maxQueued = 4 << 20

// Errors of Send.
var (
	ErrFull   = errors.New("agent does not read its input: queue is full")
	ErrClosed = errors.New("agent takes no more input")
)

// input feeds an agent's stdin without blocking its callers.
type input struct {
	file *os.File
	deaf chan struct{} // closed when the agent has closed its stdin and has not read all
	lose func()        // closes deaf

	mu      sync.Mutex
	changed sync.Cond
	queued  []byte
	writing int // bytes of the current write
	lost    int
	closed  bool
}

func newInput(file *os.File) *input {
	in := &input{file: file, deaf: make(chan struct{})}
	in.lose = sync.OnceFunc(func() { close(in.deaf) })
	in.changed.L = &in.mu
	return in
}

func (in *input) send(line []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrClosed
	}
	// A single line is taken whatever its length: it could never be sent otherwise.
	if waiting := len(in.queued) + in.writing; waiting > 0 && waiting+len(line) > maxQueued {
		return ErrFull
	}
	in.queued = append(in.queued, line...)
	in.changed.Signal()
	return nil
}

func (in *input) closeAfterQueue() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.changed.Signal()
}

// abort drops the queue, and ends a blocked write.
func (in *input) abort() {
	in.closeAfterQueue()
	_ = in.file.Close()
}

// unsent is final once run has returned.
func (in *input) unsent() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.lost
}

// run writes until the queue is closed and empty, or the agent has stopped reading.
func (in *input) run() {
	defer func() { _ = in.file.Close() }()
	for {
		chunk := in.next()
		if len(chunk) == 0 {
			return
		}
		n, err := in.file.Write(chunk)
		if err != nil {
			in.giveUp(len(chunk) - n)
			if errors.Is(err, syscall.EPIPE) {
				in.lose()
			}
			return
		}
	}
}

// watch waits for the moment at which the agent closes its stdin: lines that are in the pipe by then are not read. It
// returns when the file is closed.
func (in *input) watch() {
	conn, err := in.file.SyscallConn()
	if err != nil {
		return
	}
	unread := 0
	err = conn.Read(func(fd uintptr) bool { // the writing end is "readable" once it has no reader
		poll := []unix.PollFd{{Fd: int32(fd)}}
		if _, err := unix.Poll(poll, 0); err != nil || poll[0].Revents&unix.POLLERR == 0 {
			return false
		}
		unread, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		return true
	})
	if err == nil && unread > 0 {
		in.lose()
	}
}

// next waits for bytes and takes all; none means closed.
func (in *input) next() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.writing = 0
	for len(in.queued) == 0 && !in.closed {
		in.changed.Wait()
	}
	chunk := in.queued
	in.queued, in.writing = nil, len(chunk)
	return chunk
}

func (in *input) giveUp(unwritten int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.lost = unwritten + len(in.queued)
	in.queued, in.writing = nil, 0
}
