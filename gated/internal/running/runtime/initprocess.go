package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// infoWait is how long bubblewrap may take to report the process it started.
const infoWait = 10 * time.Second

// initProcess is the first process of a sandbox as seen from outside, the leader of
// a process group; the zero value is none. When it has ended, so has everything in
// the sandbox.
type initProcess struct {
	pid     int
	started int64
}

// readInfo reads which process bubblewrap started. There is none if it failed
// before.
func readInfo(from *os.File) initProcess {
	defer from.Close()
	_ = from.SetReadDeadline(time.Now().Add(infoWait))
	var info struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(from).Decode(&info); err != nil || info.PID <= 1 {
		return initProcess{}
	}
	st, err := readStat(info.PID)
	if err != nil {
		return initProcess{}
	}
	return initProcess{info.PID, st.started}
}

func parseInit(label string) (p initProcess) {
	if _, err := fmt.Sscanf(label, "sandbox=%d:%d", &p.pid, &p.started); err != nil || p.pid <= 1 {
		return initProcess{}
	}
	return p
}

func (p initProcess) String() string {
	if p == (initProcess{}) {
		return ""
	}
	return fmt.Sprintf("sandbox=%d:%d", p.pid, p.started)
}

func (p initProcess) alive() (bool, error) {
	if p == (initProcess{}) {
		return false, nil
	}
	st, err := readStat(p.pid)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.started == p.started && !st.dead(), err
}

// terminate asks the processes in the sandbox to exit. A signal to bubblewrap
// itself would kill them at once.
func (p initProcess) terminate() {
	if alive, err := p.alive(); alive && err == nil {
		_ = syscall.Kill(-p.pid, syscall.SIGTERM)
	}
}

// end waits until nothing of the sandbox is left.
func (p initProcess) end() error {
	if alive, err := p.alive(); err != nil || !alive {
		return err
	}
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	gone, err := within(killWait, func() (bool, error) {
		alive, err := p.alive()
		return !alive, err
	})
	if err == nil && !gone {
		err = fmt.Errorf("the sandbox of process %d is still there after SIGKILL", p.pid)
	}
	return err
}
