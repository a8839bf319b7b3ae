// Claude is an agent that runs the Claude Code CLI in its stream-json mode, one process for each run:
// each prompt becomes a user message, each result a frame, and the next run resumes the CLI's session.
// The CLI gets one turn at a time: it would merge messages that arrive during a tool call into the
// running turn, and answer in one place what was asked in two.
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

// exitConfig is EX_CONFIG of sysexits.h.
const exitConfig = 78

const usage = `usage: claude [--help | --version]
An agent that runs Claude Code, which gated runs: it reads inputs from stdin and writes frames to stdout.`

func main() {
	if args := os.Args[1:]; buildinfo.Print(os.Stdout, "claude", args) || buildinfo.Help(os.Stdout, usage, args) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := loadConfig()
	if err != nil {
		fmt.Fprintf(os.Stderr, "claude: configuration:\n%v\n", err)
		os.Exit(exitConfig)
	}
	if err := subprocess.AdoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, "claude: cannot clean up processes of Claude Code:", err)
	}
	r := newRun(ctx, cfg, os.Stderr)
	err = agentproto.Serve(ctx, os.Stdin, os.Stdout, agentproto.Agent{Answer: r.answer, Idle: r.idle, Folds: true,
		Log: os.Stderr})
	if err == nil {
		err = r.end()
	}
	r.close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "claude:", cfg.redact(err.Error()))
		os.Exit(1)
	}
}
