package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime/enter"
)

// preparation gives a sandbox its files, its network and its limits from outside. Bubblewrap holds the agent
// until that is done.
type preparation struct {
	network networkPlan
	files   []*os.File // bubblewrap's, from infoFD on
	info    *os.File
	release *os.File // a write lets the agent start; its end ends the sandbox
	init    process  // the first of the sandbox, once it is known
	up      *uplink
	doors   []*door
	group   *runGroup
}

const (
	infoFD = 3 + iota
	blockFD
	gateFD    // the pipe of blockFD, for the step between bubblewrap and the agent
	programFD // gated's own, if the agent has a user of its own
)

// prepare plans the sandbox's network, files and limits, and completes its view. The caller calls end after the
// sandbox's end.
func (s Sandbox) prepare(spec Spec, v *view) (p *preparation, err error) {
	p = new(preparation)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.end())
		}
	}()
	if p.network, err = s.planNetwork(spec); err != nil {
		return p, err
	}
	p.network.marks = []string{runMarker(spec.RunID), s.ownerMarker()}
	if err := p.open(!spec.User.IsZero()); err != nil {
		return p, err
	}
	resolvFD := 0
	if p.network.network == NetworkOwn {
		if resolvFD, err = p.add(p.network.resolvers.String()); err != nil {
			return p, err
		}
	}
	v.network = p.network.args(strconv.Itoa(resolvFD))
	if p.network.network == NetworkAsk {
		filter, err := vsockFilter()
		fd, addErr := p.add(filter)
		if err := errors.Join(err, addErr); err != nil {
			return p, err
		}
		v.network = append(v.network, "--seccomp", strconv.Itoa(fd))
	}
	if err := v.addAccounts(p); err != nil {
		return p, err
	}
	machine, err := readCgroupFS()
	if err == nil {
		p.group, err = newRunGroup(machine, s.groupPrefix()+runName(spec.RunID), spec.Limits, spec.Required)
	}
	return p, err
}

// open opens the files that each sandbox has. user is set if the agent has a user of its own.
func (p *preparation) open(user bool) (err error) {
	var infoWriter, hold *os.File
	if p.info, infoWriter, err = os.Pipe(); err != nil {
		return err
	}
	p.files = append(p.files, infoWriter)
	if hold, p.release, err = os.Pipe(); err != nil {
		return err
	}
	p.files = append(p.files, hold, hold)
	if !user {
		return nil
	}
	program, err := os.Open(self)
	if err == nil {
		p.files = append(p.files, program)
	}
	return err
}

// add gives bubblewrap a file in memory with that content, and returns its descriptor there.
func (p *preparation) add(content string) (fd int, err error) {
	memory, err := unix.MemfdCreate("arizuko", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(memory), "memory")
	p.files = append(p.files, f)
	if _, err = f.WriteString(content); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	return infoFD + len(p.files) - 1, err
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

func (p *preparation) args() []string {
	return []string{"--info-fd", strconv.Itoa(infoFD), "--block-fd", strconv.Itoa(blockFD), "--unsetenv", ownerName}
}

// run prepares the sandbox, when bubblewrap has started, and lets the agent start. It returns nil also if the sandbox
// has ended: the exit says why. With an error the agent has not started, and the
// caller must kill the sandbox.
func (p *preparation) run(ctx context.Context) error {
	defer p.release.Close()
	closeAll(p.files) // the reader of info sees their end then
	if p.init = readInfo(p.info); p.init == (process{}) {
		return nil
	}
	err := p.group.add(p.init.pid)
	if err == nil {
		p.up, p.doors, err = p.network.connect(ctx, p.init)
	}
	if !p.init.alive() || errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	_, _ = p.release.WriteString(goAhead) // if it has ended, its exit says why
	return nil
}

// end ends the sandbox, its network and its limits, after bubblewrap's end, and closes all files.
func (p *preparation) end() error {
	closeAll(append(p.files, p.info, p.release))
	for _, d := range p.doors {
		d.close()
	}
	return errors.Join(p.up.close(), p.init.endInit(), p.group.remove())
}

// infoWait is how long bubblewrap may take to report the process it started.
const infoWait = 10 * time.Second

// readInfo reads which process bubblewrap started, the first of the sandbox and the leader of a process group. There is
// none if it failed before.
func readInfo(from *os.File) process {
	_ = from.SetReadDeadline(time.Now().Add(infoWait))
	var info struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(from).Decode(&info); err != nil || info.PID <= 1 {
		return process{}
	}
	return processOf(info.PID)
}
