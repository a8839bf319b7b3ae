// Oneshot is an agent that runs a command which takes a prompt and ends with its answer:
//
//	oneshot PROGRAM [ARGUMENTS…]   reads the prompt from stdin and prints the answer
//
// Each turn runs the command once. Programs that speak the Agent Client Protocol are run by the agent acp.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/buildinfo"
)

// exitUsage is EX_USAGE of sysexits.h.
const exitUsage = 64

const usage = "usage: oneshot PROGRAM [ARGUMENTS…]"

func main() {
	if args := os.Args[1:]; buildinfo.Print(os.Stdout, "oneshot", args) || buildinfo.Help(os.Stdout, usage, args) {
		return
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(exitUsage)
	}
	if command := acpCommand(os.Args[1], os.Args[2:]); command != nil { // as lines of earlier versions have it
		fmt.Fprintln(os.Stderr, "oneshot:", execACP(command))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cli := &cli{program: os.Args[1], args: os.Args[2:], log: os.Stderr}
	if err := agentproto.Serve(ctx, os.Stdin, os.Stdout,
		agentproto.Agent{Answer: cli.answer, Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "oneshot:", err)
		os.Exit(1)
	}
}

// acpCommand is how a program speaks the Agent Client Protocol, nil if it does not.
func acpCommand(program string, args []string) []string {
	switch filepath.Base(program) {
	case "gemini":
		return append([]string{program, "--acp"}, args...)
	case "codex": // whose arguments are of another program
		return []string{"codex-acp"}
	case "opencode":
		return []string{program, "acp"}
	}
	return nil
}

// execACP replaces this program by the agent acp beside it.
func execACP(command []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	acp := filepath.Join(filepath.Dir(self), "acp")
	return fmt.Errorf("%s: %w", acp, syscall.Exec(acp, append([]string{acp}, command...), os.Environ()))
}
