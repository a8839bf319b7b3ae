// Oneshot is an agent that runs a command which takes a prompt and ends with its answer:
//
//	oneshot ANYTHING [ARGUMENTS…]   reads the prompt from stdin and prints the answer
//	oneshot gemini [ARGUMENTS…]     is recognized by the name of the program: its sessions are resumed
//
// Each turn runs the command once. Programs of the Agent Client Protocol run better by the agent acp.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cli := newCLI(os.Args[1], os.Args[2:], model(), os.Stderr)
	if err := agentproto.Serve(ctx, os.Stdin, os.Stdout,
		agentproto.Agent{Answer: cli.answer, Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "oneshot:", err)
		os.Exit(1)
	}
}
