package patroni

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// program is one that runs until it is killed.
type program struct {
	process *exec.Cmd
	ended   chan struct{}
}

// run starts a program, which logs to a file of its name in a folder.
func (c *Cluster) run(dir, name string, args ...string) (*program, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &program{process: exec.Command(name, args...), ended: make(chan struct{})}
	p.process.Dir, p.process.Stdout, p.process.Stderr = dir, log, log
	p.process.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "LC_ALL=C.UTF-8",
		"PATRONICTL_CONFIG_FILE=" + filepath.Join(dir, "patroni.yml")}
	// Of a process group of its own: the interrupt of a terminal is for the tests, which then stop it.
	p.process.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.process.Wait() // its output is in the log
	}()
	return p, nil
}

// kill kills a program, if it runs, and waits until it has ended.
func (p *program) kill() error {
	if p == nil {
		return nil
	}
	if err := p.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

func (p *program) signal(s syscall.Signal) error {
	if err := p.process.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (p *program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// postgres are the processes of the node's server. The first, from which the others come, is Patroni's child only until
// Patroni ends.
func (n *node) postgres() (pids []int, err error) {
	file, err := os.ReadFile(filepath.Join(n.dir, "data", "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(file), "\n")
	main, err := strconv.Atoi(first)
	if err != nil {
		return nil, fmt.Errorf("postmaster.pid: %w", err)
	}
	if !n.isServer(main) {
		return nil, nil // it has ended, and the number may be another's
	}
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	pids = append(pids, main)
	for _, stat := range all {
		if pid, parent := readStat(stat); parent == main {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// isServer reports whether a process runs in the node's folder, as its server does.
func (n *node) isServer(pid int) bool {
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && dir == filepath.Join(n.dir, "data")
}

// readStat reads the numbers of a process and its parent, 0 for one that has just ended.
func readStat(path string) (pid, parent int) {
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0, 0
	}
	pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	parent, _ = strconv.Atoi(string(fields[1]))
	return pid, parent
}

// signalServer sends a signal to all processes of the node's server, the first one first: it starts no others then.
func (n *node) signalServer(s syscall.Signal) error {
	pids, err := n.postgres()
	for _, pid := range pids {
		if killed := syscall.Kill(pid, s); killed != nil && !errors.Is(killed, syscall.ESRCH) {
			err = errors.Join(err, killed)
		}
	}
	return err
}

// killServer kills the node's server and waits until it has ended: another one would not start before.
func (n *node) killServer() error {
	pids, err := n.postgres()
	err = errors.Join(err, n.signalServer(syscall.SIGKILL))
	for deadline := time.Now().Add(startTimeout); err == nil && len(pids) > 0; {
		if !n.isServer(pids[0]) {
			pids = pids[1:]
			continue
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d of %s does not end", pids[0], n.name)
		}
		<-time.After(pollInterval)
	}
	return err
}

// kill kills Patroni and the server.
func (n *node) kill() error { return errors.Join(n.patroni.kill(), n.killServer()) }
