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

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime/enter"
)

// preparation gives a sandbox its files, its network and its limits from outside. Bubblewrap holds the agent
// until that is done.
type preparation struct {
	network  networkPlan
	files    []*os.File // bubblewrap's, from infoFD on
	resolvFD int        // of the resolv.conf, if the network has one
	info     *os.File
	release  *os.File // a write lets the agent start; its end ends the sandbox
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
	gateFD    // the pipe of blockFD, for the step between bubblewrap and the agent
	programFD // gated's own, if the agent has a user of its own
)

// newPreparation opens the files. user is set if the agent has a user of its own. The caller closes them with
// closeTheirs once bubblewrap has started, and with close if it does not start.
func newPreparation(network networkPlan, user bool) (p *preparation, err error) {
	p = &preparation{network: network, done: make(chan struct{})}
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
	if hold, p.release, err = os.Pipe(); err != nil {
		return p, err
	}
	p.files = append(p.files, hold, hold)
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

// goAhead is one byte for bubblewrap and one line for the step after it. Bubblewrap goes
// on at the end of the pipe, too, which gated's end is: only that step can tell.
const goAhead = "\n" + enter.GoAhead

// gateScript is that step if the agent has gated's user. stdio is the descriptor of the agent's stdin, the next one
// that of its stdout; 0: those of the step.
func gateScript(stdio int) string {
	redirect := ""
	if stdio > 0 {
		redirect = fmt.Sprintf(" <&%d >&%d %d<&- %d>&-", stdio, stdio+1, stdio, stdio+1)
	}
	return fmt.Sprintf(`read -r go <&%d && exec "$@" %d<&-%s; exit %d`, gateFD, gateFD, redirect, enter.ExitFailed)
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
	return []string{"--info-fd", strconv.Itoa(infoFD), "--block-fd", strconv.Itoa(blockFD), "--unsetenv", ownerName}
}

// stdio is the descriptor in bubblewrap that is after all files, where a job that is apart has its stdin.
func (p *preparation) stdio() int { return infoFD + len(p.files) }

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
	_, _ = p.release.WriteString(goAhead) // if it has ended, its exit says why
	return nil
}

func (p *preparation) equip(ctx context.Context, init initProcess) (err error) {
	if err := p.group.add(init.pid); err != nil {
		return err
	}
	p.up, p.door, err = p.network.connect(ctx, init)
	return err
}

// end ends the sandbox, its network and its limits, after bubblewrap's end.
func (p *preparation) end() error {
	<-p.done
	p.door.close()
	return errors.Join(p.up.close(), p.first().end(), p.group.remove())
}

// label is how the next gated finds all of it.
func (p *preparation) label() string {
	return strings.Join(strings.Fields(p.first().String()+" "+p.up.String()+" "+p.group.String()), " ")
}
