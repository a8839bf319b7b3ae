// Package runtime runs agent processes: it starts one, writes lines to its stdin,
// reads frames from its stdout, and ends it with everything it started. Callers
// know turns and decide which run is used again.
//
// There are three ways to run an agent, each a [Runtime]: [Process], as a process
// of this machine; [Sandbox], the same confined by bubblewrap; [Docker], in a
// container. Gated always holds a process with three pipes, the leader of its
// process group: the agent itself, bubblewrap or docker's client.
//
// A gated that is root runs agents as other users; package enter is the step in
// between.
package runtime

import (
	"context"
	"errors"
	"os"
	"time"

	"arizuko/gated/internal/running/runtime/enter"
	"arizuko/pkg/groupconfig"
)

// Runtime is a way to run agents.
type Runtime interface {
	// Check returns why an agent cannot be run on this machine, or nil. It
	// uses the Command, Image and Env of the spec.
	Check(ctx context.Context, spec Spec) error
	// Start starts an agent. The end of ctx kills it without grace. An error is a
	// *SetupError if a retry cannot succeed, a *MachineError if the machine is the
	// cause; see ClassOf.
	Start(ctx context.Context, spec Spec) (*Proc, error)
	// End ends a run that an earlier gated left and returns when it has ended,
	// temporary files included. found is false if nothing was running.
	End(ctx context.Context, left Orphan) (found bool, err error)
}

// Spec is how to run an agent.
type Spec struct {
	RunID   int64
	Command string             // for sh -c
	Image   string             // docker's; its own program runs if there is no Command
	Limits  groupconfig.Limits // not for processes without a sandbox
	Network Network            // of the sandbox or container; "" is the runtime's
	Proxy   string             // with NetworkAsk: the egress proxy's address on this machine, host:port
	// Bundle is a file with the certificates that the agent's programs trust, shown at BundlePath; "" for none.
	Bundle string
	// Required are those of Limits without which the agent must not run: a *SetupError
	// if bubblewrap cannot keep them on this machine. It leaves out others.
	Required groupconfig.Limits
	Dir      string // the group's folder on disk, absolute, which must exist
	Folder   string // the group, for the path at which bwrap shows Dir; "" shows it at Dir
	// User is whom the agent runs as; zero is gated's own user, which must not be root.
	// Dir must belong to it.
	User User
	// Env are the variables of the agent, "NAME=value"; see Environ. A runtime
	// may have a HOME and a PATH of its own, and adds TMPDIR.
	Env     []string
	LogPath string
	// Data is the data folder, if LogPath is in it. Then the log's folder is made unless it exists, and a gated of root
	// follows no link of its owner to there.
	Data string
	// Redact hides secrets in the log; nil hides none.
	Redact func(string) string
	// OutputGrace is how long the agent may go on running after it has closed its stdout. Then it gets SIGTERM, and
	// after as long again SIGKILL. 0: for ever.
	OutputGrace time.Duration
}

// BundlePath is where sandboxes and containers show Spec.Bundle.
const BundlePath = "/run/arizuko/certificates.pem"

func (s Spec) checkUser() error {
	if s.User.IsZero() && os.Getuid() == 0 {
		return setupError("gated is root, and an agent without a user of its own would be root too")
	}
	return nil
}

// checkUnconfined refuses a network that a process of the machine cannot be kept to.
func (s Spec) checkUnconfined() error {
	if s.Network != NetworkAsk {
		return nil
	}
	return setupError("agent.network: ask needs a sandbox, since a process of this machine reaches whatever it " +
		"likes: set AGENT_SANDBOX=bwrap, or the group's agent.runtime to bwrap or docker")
}

// user is whom the agent runs as.
func (s Spec) user() User {
	if s.User.IsZero() {
		return User{UID: os.Getuid(), GID: os.Getgid()}
	}
	return s.User
}

// Orphan is a run of an earlier gated, as it was recorded.
type Orphan struct {
	RunID    int64
	PID      int           // 0 if it was not recorded
	PIDStart int64         // see Proc.PIDStart
	Label    string        // see Proc.Label
	Grace    time.Duration // between the signals
}

// Process runs agents as processes of this machine, with the rights of their user.
type Process struct {
	Temp     string   // the folder of the runs' temporary folders
	Readable []string // folders and files of others that the agents' users must be able to reach
	AsRoot   bool     // root may be the user: for tests
}

// Check makes the shell look for the agent's program.
func (p Process) Check(ctx context.Context, spec Spec) error {
	if err := errors.Join(p.checkUser(spec), spec.checkUnconfined()); err != nil {
		return err
	}
	where := ""
	if !spec.User.IsZero() {
		where = " by user " + spec.User.String() +
			", or may not be executed by it: AGENT_READABLE names what is in closed folders"
	}
	return check(ctx, spec, p.Temp, where, p.start)
}

func (p Process) checkUser(spec Spec) error {
	if p.AsRoot {
		return nil
	}
	return spec.checkUser()
}

// Start runs spec.Command by sh -c.
func (p Process) Start(ctx context.Context, spec Spec) (*Proc, error) {
	if err := errors.Join(p.checkUser(spec), spec.checkUnconfined()); err != nil {
		return nil, err
	}
	return tempDir{p.Temp, spec.RunID}.use(ctx, spec, p.start)
}

// start is a starter.
func (p Process) start(ctx context.Context, spec Spec, argv []string, temp string, cleanup func()) (*Proc, error) {
	env := without(spec.Env, "TMPDIR")
	if !spec.User.IsZero() {
		order := enter.Order{User: spec.User, Dir: spec.Dir, Reach: true, Paths: []string{temp}, Readable: p.Readable,
			Command: argv}
		argv = append([]string{self}, order.Args()...)
		env = append(without(env, "HOME"), "HOME="+spec.Dir)
	}
	return start(ctx, spec, job{argv: argv, env: append(env, "TMPDIR="+temp), cleanup: func(*Exit) { cleanup() }})
}

// End kills the run's process group, and other processes with its environment.
func (p Process) End(_ context.Context, left Orphan) (found bool, err error) {
	temp := tempDir{p.Temp, left.RunID}
	found, err = left.end(func(pid int) bool { // other instances have the same run ids
		return hasMarkers(pid, runMarker(left.RunID), "TMPDIR="+temp.path())
	})
	if err != nil {
		return found, err
	}
	return found, temp.remove()
}

// User is a user and its only group.
type User = enter.User

const (
	shell = "/bin/sh"
	// self is gated's own program, even if its file was replaced.
	self = "/proc/self/exe"
)

var errNoCommand = &SetupError{errors.New("no command is set: set AGENT_COMMAND or the group's agent.command")}
