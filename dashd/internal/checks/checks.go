// Package checks runs `NAME check` of the programs beside dashd.
package checks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

const (
	// timeout bounds one check: gated gives an engine of containers 30 s.
	timeout = 40 * time.Second
	// maxOutput is how much of a check's output is read, in bytes.
	maxOutput = 64 << 10
)

// Result is the result of a check.
type Result struct {
	Code        int
	Out, Errors string
	Problem     string // why it could not be run to its end
}

// Run runs the check of a program with an environment.
func Run(ctx context.Context, path string, environ []string) Result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out, problems bounded
	cmd := exec.CommandContext(ctx, path, "check")
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, &out, &problems
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with the programs that it started
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	r := Result{Out: out.String(), Errors: problems.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.Problem = fmt.Sprintf("it did not end within %s", timeout)
	case errors.As(err, &exit):
		r.Code = exit.ExitCode()
	case err != nil:
		r.Problem = err.Error()
	}
	return r
}

// bounded keeps the beginning of the output.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxOutput-b.Len())])
	return len(p), nil
}
