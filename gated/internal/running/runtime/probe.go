package runtime

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"

	"arizuko/gated/internal/running/runtime/enter"
)

// probe finds the program it is given as $1, if there is one. Shells may find a path
// that cannot be executed.
const probe = `[ -z "$1" ] || { command -v "$1" >/dev/null && case $1 in /*) [ -x "$1" ];; esac; }`

// checkDir begins the names of the probes' folders.
const checkDir = "check-"

// probeArgs are arguments of a shell that looks for the program of a command.
func probeArgs(command string) []string { return []string{"-c", probe, "sh", program(command)} }

// probeDir makes a folder for a probe in the role of a group's, in temp if that is
// there. The caller removes it.
func probeDir(temp string, u User) (string, error) {
	if _, err := os.Stat(temp); err != nil {
		temp = "" // gated has not run yet
	}
	dir, err := os.MkdirTemp(temp, checkDir+thisProcess().String()+"-")
	if err != nil || u.IsZero() {
		return dir, err
	}
	if err := os.Lchown(dir, u.UID, u.GID); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}

// runProbe runs a probe and explains its failure. where is a hint for the operator
// where the program must be. prepare, if it is not nil, is called when the probe has
// started; its error ends the probe.
func runProbe(cmd *exec.Cmd, command, where string, prepare func() error) error {
	if command == "" {
		return errNoCommand
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = cmp.Or(cmd.WaitDelay, killWait) // its children may hold its output open
	goruntime.LockOSThread()                        // the kernel sends its parent-death signal when the thread ends
	defer goruntime.UnlockOSThread()
	err := cmd.Start()
	if err == nil && prepare != nil {
		if failed := prepare(); failed != nil {
			_ = cmd.Process.Kill()
			return errors.Join(failed, ignoreExit(cmd.Wait()))
		}
	}
	if err == nil {
		err = cmd.Wait()
	}
	if errors.Is(err, exec.ErrWaitDelay) { // its exit code is 0
		err = nil
	}
	said := string(bytes.TrimSpace(out.Bytes()))
	switch {
	case err == nil:
		return nil
	case said != "":
		return errors.New(withVersion(strings.TrimPrefix(said, enter.Prefix)))
	case errors.As(err, new(*exec.ExitError)):
		return fmt.Errorf("the agent's program %s is not found%s", program(command), where)
	}
	return err
}

// ignoreExit leaves out how a program that was killed has ended.
func ignoreExit(err error) error {
	if errors.As(err, new(*exec.ExitError)) {
		return nil
	}
	return err
}

// program returns the program of a simple command line, "" if only a shell can
// tell.
func program(command string) string {
	word := strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(command), "exec "), " ")
	if quoted, ok := strings.CutPrefix(word, "'"); ok {
		word, rest, _ := strings.Cut(quoted, "'")
		if rest != "" && rest[0] != ' ' || quoted == word {
			return ""
		}
		return word
	}
	word, _, _ = strings.Cut(word, " ")
	if strings.ContainsAny(word, "\"'`$\\=;&|<>(){}[]*?~#!\n\t") {
		return ""
	}
	return word
}
