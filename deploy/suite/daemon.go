package suite

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"arizuko/pkg/store"
)

// logTail is how much of a daemon's log a failed test shows, in bytes.
const logTail = 12 << 10

// process is one daemon.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it is gone
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// command is a program of the suite, to be run in its environment.
func (s *Suite) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Env, cmd.Dir = s.env, s.Data
	return cmd
}

// StartDaemon starts a daemon that does not run, and does not wait for it.
func (s *Suite) StartDaemon(name string) {
	s.t.Helper()
	log, err := os.OpenFile(s.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	p := &process{cmd: s.command(name), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A test that is killed takes its daemons with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its exit code is what counts
		close(p.done)
	}()
	s.daemons[name] = p
}

// WaitReady returns when a daemon says that it is ready.
func (s *Suite) WaitReady(name string) {
	s.t.Helper()
	s.Until(name+" is ready", func() bool {
		if !s.daemons[name].running() {
			s.t.Fatalf("%s ended with %d", name, s.daemons[name].cmd.ProcessState.ExitCode())
		}
		status, _ := s.readiness(name)
		return status == http.StatusOK
	})
}

// Waits returns what a daemon that is not ready says it waits for, "" if it is
// ready or does not listen yet.
func (s *Suite) Waits(name string) string {
	status, body := s.readiness(name)
	if status != http.StatusServiceUnavailable {
		return ""
	}
	return body
}

func (s *Suite) readiness(name string) (status int, body string) {
	port := map[string]string{Gated: "8080", Routd: "8081"}[name]
	res, err := http.Get("http://" + s.host + ":" + port + "/readyz")
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	var text bytes.Buffer
	_, _ = text.ReadFrom(res.Body) // what came is what is shown
	return res.StatusCode, text.String()
}

// Signal sends a daemon a signal.
func (s *Suite) Signal(name string, signal syscall.Signal) {
	s.t.Helper()
	if err := s.daemons[name].cmd.Process.Signal(signal); err != nil {
		s.t.Fatalf("%s to %s: %v", signal, name, err)
	}
}

// Kill ends a daemon without any warning.
func (s *Suite) Kill(name string) {
	s.t.Helper()
	s.Signal(name, syscall.SIGKILL)
	<-s.daemons[name].done
}

// Hang makes a daemon stand still at a moment when it does not hold up the
// database, until Resume.
func (s *Suite) Hang(name string) {
	s.t.Helper()
	err := s.st.Write(s.t.Context(), func(*store.Tx) error { // so that nobody else writes
		if err := s.daemons[name].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		if !becomes(func() bool { return s.state(name) == "T" }) {
			return errors.New(name + " does not stand still")
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// state is the kernel's letter for what a process does.
func (s *Suite) state(name string) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.daemons[name].cmd.Process.Pid), "stat"))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0]
}

// Resume has a daemon go on that was made to hang.
func (s *Suite) Resume(name string) {
	s.t.Helper()
	s.Signal(name, syscall.SIGCONT)
}

// Stop asks a daemon to end and returns its exit code.
func (s *Suite) Stop(name string) int {
	s.t.Helper()
	s.Signal(name, syscall.SIGTERM)
	return s.ExitCode(name)
}

// ExitCode waits for a daemon's end.
func (s *Suite) ExitCode(name string) int {
	s.t.Helper()
	p := s.daemons[name]
	s.Until(name+" has ended", func() bool { return !p.running() })
	return p.cmd.ProcessState.ExitCode()
}

// Restart starts a daemon that was stopped or killed, and waits for it.
func (s *Suite) Restart(name string) {
	s.t.Helper()
	s.StartDaemon(name)
	s.WaitReady(name)
}

func (s *Suite) logPath(name string) string { return filepath.Join(s.Data, name+".log") }

// Log is what a daemon has logged so far, over all its restarts.
func (s *Suite) Log(name string) string {
	s.t.Helper()
	log, err := os.ReadFile(s.logPath(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(log)
}

// Input is what agents of a group were sent, if the agent is Recording.
func (s *Suite) Input(folder string) string {
	s.t.Helper()
	input, err := os.ReadFile(filepath.Join(s.Data, "groups", filepath.FromSlash(folder), "input.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(input)
}

// dump shows what a failed test leaves behind.
func (s *Suite) dump() {
	for name := range s.daemons {
		log := s.Log(name)
		s.t.Logf("%s's log:\n%s", name, log[max(0, len(log)-logTail):])
	}
	if s.db == nil {
		return
	}
	for _, query := range []string{
		`SELECT id, chat_jid, direction, verb, substr(content, 1, 60), topic, thread_id, disposition, reason, routed_to, turn_id, out_state
			FROM messages ORDER BY id DESC LIMIT 60`,
		`SELECT id, run_id, kind, folder, chat_jid, topic, thread_id, state, reason, attempts, frames, error FROM turns ORDER BY id DESC LIMIT 40`,
	} {
		s.t.Log(strings.Join(s.lines(query), "\n"))
	}
}

// strays are the processes that work inside the data folder, as agents do.
func (s *Suite) strays() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Error(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err == nil && strings.HasPrefix(dir, filepath.Join(s.Data, "groups")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killStrays ends agents whose gated was killed.
func (s *Suite) killStrays() {
	for _, pid := range s.strays() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have gone by itself
	}
}
