// Agentcheck runs agents without a chat or a database, as the program of `gated agent`:
//
//	agentcheck try -- COMMAND       is a conversation at a terminal
//	agentcheck conform -- COMMAND   checks an agent against the protocol, case by case
//
// Agents run as with AGENT_RUNTIME=process, and the output says how gated would take each answer. Gated starts the
// program with the environment of agents, and with the secrets to hide in the output.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"arizuko/pkg/buildinfo"
	"arizuko/pkg/config"
)

// Exit codes, as those of daemons.
const (
	exitFailure = 1
	exitUsage   = 78
)

func main() {
	if buildinfo.Print(os.Stdout, "agentcheck", os.Args[1:]) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	secrets, err := readSecrets()
	hidden := config.NewRedactor(secrets...)
	if err == nil {
		agent := Agent{Env: os.Environ(), Redact: hidden.String}
		err = command(ctx, agent, os.Args[1:], os.Stdin, os.Stdout)
	}
	os.Exit(report(err, ctx.Err() != nil, func(text string) string { return printable(hidden.String(text)) }))
}

// report prints an error and returns the exit code. The end of a program that was interrupted is no error.
func report(err error, interrupted bool, safe func(string) string) int {
	if err == nil || errors.Is(err, flag.ErrHelp) || interrupted && errors.Is(err, context.Canceled) {
		return 0
	}
	for line := range strings.Lines(strings.TrimSpace(err.Error()) + "\n") {
		fmt.Fprint(os.Stderr, safe("gated: "+line))
	}
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailure
}

// secretsFD names the descriptor of a file with the secrets, a list in JSON. Without it nothing is hidden.
const secretsFD = "ARIZUKO_SECRETS_FD"

// readSecrets keeps the descriptor, and all others that gated inherited, from the agent.
func readSecrets() (secrets []string, err error) {
	if fd := os.Getenv(secretsFD); fd != "" {
		n, err := strconv.Atoi(fd)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", secretsFD, err)
		}
		file := os.NewFile(uintptr(n), "secrets")
		defer file.Close()
		if err := json.NewDecoder(file).Decode(&secrets); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("secrets to hide: %w", err)
		}
	}
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // not in kernels before 5.11
	return secrets, os.Unsetenv(secretsFD)
}
