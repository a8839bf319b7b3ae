package scenarios

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"arizuko/pkg/store"
)

// logTail is how much of a daemon's log a failed test shows, in bytes.
const logTail = 12 << 10

// StartDaemon starts a daemon that does not run, and does not wait for it.
func (s *Suite) StartDaemon(name string) {
	s.t.Helper()
	if err := s.instance.Start(name); err != nil {
		s.t.Fatal(err)
	}
}

// WaitReady returns when a daemon says that it is ready.
func (s *Suite) WaitReady(name string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.instance.AwaitReady(ctx, name); err != nil {
		s.t.Fatal(err)
	}
}

// Waits returns what a daemon that is not ready says it waits for, "" if it is
// ready or does not listen yet.
func (s *Suite) Waits(name string) string {
	status, body := s.instance.Readiness(s.t.Context(), name)
	if status != http.StatusServiceUnavailable {
		return ""
	}
	return body
}

// Signal sends a daemon a signal.
func (s *Suite) Signal(name string, signal syscall.Signal) {
	s.t.Helper()
	if err := s.instance.Process(name).Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// Kill ends a daemon without any warning.
func (s *Suite) Kill(name string) {
	s.t.Helper()
	if err := s.instance.Kill(name); err != nil {
		s.t.Fatal(err)
	}
}

// Hang makes a daemon stand still at a moment when it does not hold up the
// database, until Resume.
func (s *Suite) Hang(name string) {
	s.t.Helper()
	err := s.st.Write(s.t.Context(), func(*store.Tx) error { // so that nobody else writes
		if err := s.instance.Process(name).Signal(syscall.SIGSTOP); err != nil {
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
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.instance.Process(name).PID()), "stat"))
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
	p := s.instance.Process(name)
	s.Until(name+" has ended", func() bool { return !p.Running() })
	return p.State().ExitCode()
}

// Restart starts a daemon that was stopped or killed, and waits for it.
func (s *Suite) Restart(name string) {
	s.t.Helper()
	s.StartDaemon(name)
	s.WaitReady(name)
}

// Log is what a daemon has logged so far, over all its restarts.
func (s *Suite) Log(name string) string {
	s.t.Helper()
	log, err := s.instance.Log(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return log
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
	for _, name := range s.instance.Started() {
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
func (s *Suite) strays() []int {
	s.t.Helper()
	pids, err := s.instance.Strays()
	if err != nil {
		s.t.Error(err)
	}
	return pids
}
