package harness

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// logTail is how much of a log a failed test shows, in bytes.
const logTail = 12 << 10

// StartDaemon starts a daemon that does not run, with env added to its environment, and does not
// wait until it is ready.
func (f *Fixture) StartDaemon(name string, env ...string) {
	f.T.Helper()
	f.OK(f.Instance.Start(name, env...))
}

// WaitReady waits until a daemon is ready.
func (f *Fixture) WaitReady(name string) {
	f.T.Helper()
	ctx, cancel := f.timeout()
	defer cancel()
	f.OK(f.Instance.AwaitReady(ctx, name))
}

// Restart starts a daemon that does not run, with env added to its environment, and waits until it
// is ready.
func (f *Fixture) Restart(name string, env ...string) {
	f.T.Helper()
	f.StartDaemon(name, env...)
	f.WaitReady(name)
}

// NotReadyReason is the reason that a daemon gives for not being ready; "" if it is ready or does
// not listen yet.
func (f *Fixture) NotReadyReason(name string) string {
	status, body := f.Instance.Readiness(f.T.Context(), name)
	if status != http.StatusServiceUnavailable {
		return ""
	}
	return body
}

// Signal sends a signal to a daemon.
func (f *Fixture) Signal(name string, signal syscall.Signal) {
	f.T.Helper()
	f.OK(f.Instance.Process(name).Signal(signal))
}

// Kill kills a daemon.
func (f *Fixture) Kill(name string) {
	f.T.Helper()
	f.OK(f.Instance.Kill(name))
}

// Suspend stops a daemon until Resume, at a moment when it holds no lock of the database.
func (f *Fixture) Suspend(name string) {
	f.T.Helper()
	f.OK(suspend(f.Store, f.Instance.Process(name).PID()))
}

// Resume continues a suspended daemon.
func (f *Fixture) Resume(name string) {
	f.T.Helper()
	f.Signal(name, syscall.SIGCONT)
}

// suspend stops a process and waits until all its threads have stopped, with the database locked: a thread that still
// runs could get the lock afterwards and stop with it.
func suspend(st *store.Store, pid int) error {
	ctx, cancel := timeout(maxWait)
	defer cancel()
	return st.Write(ctx, func(*store.Tx) error {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		return Await(ctx, "a process to be suspended", func() (bool, error) { return stopped(pid), nil })
	})
}

// stopped reports whether all threads of a process are stopped.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	running := func(thread string) bool {
		stat, err := os.ReadFile(thread)
		return err != nil || !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T "))
	}
	return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, running)
}

// Stop sends a daemon SIGTERM and returns its exit code.
func (f *Fixture) Stop(name string) int {
	f.T.Helper()
	f.Signal(name, syscall.SIGTERM)
	return f.ExitCode(name)
}

// ExitCode waits until a daemon has ended.
func (f *Fixture) ExitCode(name string) int {
	f.T.Helper()
	p := f.Instance.Process(name)
	f.Until(name+" to end", func() bool { return !p.Running() })
	return p.State().ExitCode()
}

// Log is the log of a daemon over all its starts.
func (f *Fixture) Log(name string) string {
	f.T.Helper()
	log, err := f.Instance.Log(name)
	f.OK(err)
	return log
}

// Agents are the process ids of running agents.
func (f *Fixture) Agents() []int {
	f.T.Helper()
	pids, err := f.Instance.Agents()
	if err != nil {
		f.T.Error(err)
	}
	return pids
}

// LetGo makes the file that agents of a group wait for: the demo agent at "until NAME". The folder of an agent that
// starts may be missing still.
func (f *Fixture) LetGo(folder, name string) {
	f.T.Helper()
	f.Until("a file "+name+" for "+folder, func() bool {
		return os.WriteFile(filepath.Join(f.Data, "groups", msg.DirName(folder), name), nil,
			0o644) == nil //nolint:gosec // the agent has a user of its own
	})
}

// AgentInput is all input of a group's agents, if their command begins with Recording.
func (f *Fixture) AgentInput(folder string) string {
	f.T.Helper()
	input, err := os.ReadFile(filepath.Join(f.Data, "groups", msg.DirName(folder), "input.jsonl"))
	f.OK(err)
	return string(input)
}

// logFailure logs the end of the daemons' logs and of the tables.
func (f *Fixture) logFailure() {
	for _, log := range f.onFailure {
		log()
	}
	for _, name := range f.Instance.Started() {
		f.T.Logf("log of %s:\n%s", name, f.Instance.LogTail(name, logTail))
	}
	if f.DB == nil {
		return
	}
	for _, query := range []string{
		`SELECT id, chat_jid, direction, verb, substr(content, 1, 60), topic, thread_id, disposition, reason, routed_to, turn_id, out_state
			FROM messages ORDER BY id DESC LIMIT 60`,
		`SELECT id, run_id, kind, folder, chat_jid, topic, thread_id, state, reason, attempts, frames, error FROM turns ORDER BY id DESC LIMIT 40`,
	} {
		rows, err := invariants.Lines(f.DB, query)
		f.T.Logf("%v\n%s", err, strings.Join(rows, "\n"))
	}
}
