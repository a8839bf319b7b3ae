package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"arizuko/gated/internal/running/runtime/enter"
)

// Class tells whether anything must change before an agent can be run. A failure of the
// agent itself only needs another attempt.
type Class int

const (
	// ClassAgent is a failure of the agent, and all that is not known to be another.
	ClassAgent Class = iota
	// ClassSetup: an operator must fix the configuration; a retry cannot succeed.
	ClassSetup
	// ClassMachine: no space, no process, no engine. It passes, or affects all agents;
	// the turn is not to blame.
	ClassMachine
)

func (c Class) String() string {
	switch c {
	case ClassSetup:
		return "setup"
	case ClassMachine:
		return "machine"
	}
	return "agent"
}

// ClassOf returns the class of an error of this package, or of a system call made
// for a run, such as making its folder. A machine error takes precedence over
// errors joined with it, since it may be their cause.
func ClassOf(err error) Class {
	switch {
	case err == nil, errors.Is(err, context.Canceled): // gated is stopping
		return ClassAgent
	case errors.As(err, new(*MachineError)):
		return ClassMachine
	case errors.As(err, new(*SetupError)):
		return ClassSetup
	case isAny(err, machineErrnos):
		return ClassMachine
	case isAny(err, setupErrnos):
		return ClassSetup
	}
	return ClassAgent
}

// SetupError is why agents cannot be run as they are set up. An operator must fix
// that; a retry cannot succeed.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }

func setupError(format string, args ...any) error { return &SetupError{fmt.Errorf(format, args...)} }

// MachineError is why no agent can be run on this machine now.
type MachineError struct{ Err error }

func (e *MachineError) Error() string { return e.Err.Error() }
func (e *MachineError) Unwrap() error { return e.Err }

// Errors of system calls. EIO and EROFS are a disk that fails, and is then often
// mounted read-only.
var (
	machineErrnos = []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE,
		syscall.ENOBUFS, syscall.EIO, syscall.EROFS,
	}
	setupErrnos = []syscall.Errno{
		syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES, syscall.EPERM, syscall.ELOOP, syscall.ENAMETOOLONG,
		syscall.ENOEXEC, syscall.E2BIG,
	}
)

func isAny(err error, numbers []syscall.Errno) bool {
	return slices.ContainsFunc(numbers, func(n syscall.Errno) bool { return errors.Is(err, n) })
}

// typed gives an error of Start the type of its class.
func typed(err error) error {
	return withClass(err, ClassOf(err))
}

// Texts of programs about errors of system calls and of docker's client about its
// engine, in any case. A text of both lists is of the first that is tried.
var (
	machineText = regexp.MustCompile(`(?i)no space left on device|disk quota exceeded|` +
		`resource temporarily unavailable|` +
		`cannot allocate memory|too many open files|read-only file system|cannot fork|fork: retry`)
	engineText = regexp.MustCompile(`(?i)docker daemon running|if the daemon is running|` +
		`connect to the docker (daemon|` +
		`api)|error during connect|` +
		`shutting down|shut down|connection (refused|reset)|broken pipe|unexpected eof|i/o timeout|deadline exceeded|` +
		`/sbin/docker-init`) // the engine's own: a busy one starts a container now and then without its files
	dockerSetupText = regexp.MustCompile(`(?i)no such image|permission denied while trying to connect|` +
		`invalid reference format|` +
		`unknown flag|network \S+ not found|unknown or invalid runtime|invalid argument`)
	missingText = regexp.MustCompile(`(?i)not found|no such file or directory|permission denied|cannot execute|` +
		`exec format error|is a directory`)
)

// dockerClass is the class of an error that docker's client printed.
func dockerClass(said string) Class {
	switch {
	case dockerSetupText.MatchString(said):
		return ClassSetup
	case machineText.MatchString(said), engineText.MatchString(said):
		return ClassMachine
	}
	return ClassAgent
}

// A shell's exit codes for a program that it cannot execute or find, which docker
// uses too.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// startFailure returns why the agent's program was never reached, nil if it may have
// been: only certain cases, for a run without a frame. The shell, bubblewrap and
// docker report that by an exit code and a line on stderr, and so does package enter.
func startFailure(exit Exit) error {
	tail := strings.TrimSpace(exit.StderrTail)
	said := cmp.Or(dockerLine(tail), strings.TrimSpace(tail[strings.LastIndexByte(tail, '\n')+1:]))
	sandbox := exit.Code == 1 && strings.HasPrefix(said, "bwrap: ")
	missing := exit.Code == exitNotExecutable || exit.Code == exitNotFound
	ofShell := exit.Code > 0 && strings.HasPrefix(said, shell+": ")
	ofEnv := strings.HasPrefix(said, "/usr/bin/env: ")
	ofEngine := dockerLine(tail) != ""
	entering := exit.Code == enter.ExitFailed && strings.HasPrefix(said, enter.Prefix)
	switch {
	case (sandbox || missing || ofShell || entering) && machineText.MatchString(said),
		missing && ofEngine && engineText.MatchString(said):
		return &MachineError{fmt.Errorf("the agent's program cannot be started: %s", said)}
	case sandbox && strings.HasPrefix(said, "bwrap: Unknown option"):
		return setupError("the agent's program cannot be started: %s (bubblewrap %s or newer is needed)", said,
			minBwrap)
	case sandbox, entering, missing && (ofShell || ofEnv || missingText.MatchString(said)): // theirs in any language
		return setupError("the agent's program cannot be started: %s", said)
	}
	return nil
}

// withClass gives err the type of a class.
func withClass(err error, c Class) error {
	switch c {
	case ClassSetup:
		return &SetupError{err}
	case ClassMachine:
		return &MachineError{err}
	}
	return err
}
