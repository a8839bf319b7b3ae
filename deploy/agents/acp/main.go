// Acp is an agent that runs an agent of the Agent Client Protocol, version 1:
//
//	acp PROGRAM [ARGUMENTS…]
//
// The program runs as long as the run: each prompt becomes a session/prompt, each response a frame, and the next run
// resumes the session. It gets one turn at a time, since agents join, drop or cancel a second prompt, each in its own
// way; only one that announces steering gets messages that come meanwhile.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"arizuko/deploy/agents/internal/subprocess"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/buildinfo"
)

// Exit codes of sysexits.h.
const (
	exitUsage  = 64
	exitConfig = 78
)

const usage = `usage: acp PROGRAM [ARGUMENTS…]
An agent that runs an agent of the Agent Client Protocol, such as acp opencode acp.
Gated runs it: it reads inputs from stdin and writes frames to stdout.`

func main() {
	if args := os.Args[1:]; buildinfo.Print(os.Stdout, "acp", args) || buildinfo.Help(os.Stdout, usage, args) {
		return
	}
	if len(os.Args) == 2 && os.Args[1] == relayCommand {
		os.Exit(relay())
	}
	command := os.Args[1:]
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := loadConfig(command)
	if err != nil {
		fmt.Fprintf(os.Stderr, "acp: configuration:\n%v\n", err)
		os.Exit(exitConfig)
	}
	if err := subprocess.AdoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, "acp: cannot clean up processes of the agent:", err)
	}
	r := newRun(ctx, cfg, os.Stderr)
	err = agentproto.Serve(ctx, os.Stdin, os.Stdout, agentproto.Agent{Answer: r.answer, Idle: r.idle, Log: os.Stderr})
	r.close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "acp:", cfg.redact(err.Error()))
		os.Exit(1)
	}
}
