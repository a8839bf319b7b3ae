package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// preparation gives a sandbox what it needs from outside. Bubblewrap holds the agent
// until that is done.
type preparation struct {
	runID    int64
	network  networkPlan
	files    []*os.File // bubblewrap's, from infoFD on
	resolvFD int        // of the resolv.conf, if the network has one
	info     *os.File
	release  *os.File // a byte written to it lets the agent start
	first    func() initProcess
	done     chan struct{} // closed when run has returned, or is not called any more
	finish   func()        // closes done
	up       *uplink
	door     *door
	group    *runGroup
}

const (
	infoFD = 3 + iota
	blockFD
	programFD // gated's own, if the agent has a user of its own
)

// newPreparation opens the files. user is set if the agent has a user of its own. The caller closes them with closeTheirs once
// bubblewrap has started, and with close if it does not start.
func newPreparation(runID int64, network networkPlan, user bool) (p *preparation, err error) {
	p = &preparation{runID: runID, network: network, done: make(chan struct{})}
	p.finish = sync.OnceFunc(func() { close(p.done) })
	p.first = sync.OnceValue(func() initProcess { return readInfo(p.info) })
	defer func() {
		if err != nil {
			p.closeTheirs()
			p.close()
		}
	}()
	var infoWriter, hold *os.File
	if p.info, infoWriter, err = os.Pipe(); err != nil {
		return p, err
	}
	p.files = append(p.files, infoWriter)
	if hold, p.release, err = holdPipe(); err != nil {
		return p, err
	}
	p.files = append(p.files, hold)
	if user {
		program, err := os.Open(self)
		if err != nil {
			return p, err
		}
		p.files = append(p.files, program)
	}
	if network.network == NetworkOwn {
		p.resolvFD, err = p.add(network.resolvers.String())
	}
	return p, err
}

// add gives bubblewrap a file with that content and returns its descriptor there.
func (p *preparation) add(content string) (fd int, err error) {
	f, err := fileWith(content)
	if err != nil {
		return 0, err
	}
	p.files = append(p.files, f)
	return infoFD + len(p.files) - 1, nil
}

// holdPipe is a pipe whose reading end is a writing end, too: who reads it waits even
// when gated has ended, until it is killed.
func holdPipe() (hold, release *os.File, err error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	defer func() { _ = syscall.Close(ends[0]) }()
	both, err := syscall.Open("/proc/self/fd/"+strconv.Itoa(ends[0]), syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	release = os.NewFile(uintptr(ends[1]), "release")
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open a pipe once more: %w", err), release.Close())
	}
	return os.NewFile(uintptr(both), "hold"), release, nil
}

// fileWith is an open file in memory.
func fileWith(content string) (*os.File, error) {
	fd, err := unix.MemfdCreate("arizuko", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	_, err = f.WriteString(content)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// args are bubblewrap's arguments.
func (p *preparation) args() []string {
	return []string{"--info-fd", strconv.Itoa(infoFD), "--block-fd", strconv.Itoa(blockFD)}
}

// closeTheirs closes bubblewrap's files: the reader of info sees their end then.
func (p *preparation) closeTheirs() { closeAll(p.files) }

func (p *preparation) close() {
	closeAll([]*os.File{p.info, p.release})
	p.finish()
}

// run prepares the sandbox and lets the agent start. It returns nil also if the sandbox
// has ended: the exit says why. With an error the agent has not started, and the
// caller must kill the sandbox.
func (p *preparation) run(ctx context.Context) error {
	defer p.finish()
	defer p.release.Close()
	init := p.first()
	if init == (initProcess{}) {
		return nil
	}
	err := p.equip(ctx, init)
	if alive, aliveErr := init.alive(); aliveErr == nil && !alive || errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	_, _ = p.release.Write([]byte{1}) // if it has ended, its exit says why
	return nil
}

func (p *preparation) equip(ctx context.Context, init initProcess) (err error) {
	if err := p.group.add(init.pid); err != nil {
		return err
	}
	p.up, p.door, err = p.network.connect(ctx, init, p.runID)
	return err
}

// end ends the sandbox and what it had from outside, after bubblewrap's end.
func (p *preparation) end() error {
	<-p.done
	p.door.close()
	return errors.Join(p.up.close(), p.first().end(), p.group.remove())
}

// label is how the next gated finds all of it.
func (p *preparation) label() string {
	return strings.Join(strings.Fields(p.first().String()+" "+p.up.String()+" "+p.group.String()), " ")
}
