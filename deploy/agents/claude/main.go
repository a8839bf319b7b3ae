// Claude is an agent that runs the Claude Code CLI in its stream-json mode, one process for each run:
// each prompt becomes a user message, each result a frame, and the next run resumes the CLI's session.
// The CLI gets one turn at a time: it would merge messages that arrive during a tool call into the
// running turn, and answer in one place what was asked in two.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

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
	if err := adoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, "claude: cannot clean up processes of Claude Code:", err)
	}
	inputs, readErr := readInputs(os.Stdin)
	err = newRun(cfg, os.Stdout, os.Stderr).serve(ctx, inputs)
	if err == nil {
		err = <-readErr
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "claude:", cfg.redact(err.Error()))
		os.Exit(1)
	}
}

// readInputs sends the inputs read from in until its end or an invalid line. The error, nil at the end,
// can be received after inputs is closed.
func readInputs(in io.Reader) (<-chan agentproto.Input, <-chan error) {
	inputs, failed := make(chan agentproto.Input), make(chan error, 1)
	go func() {
		defer close(inputs)
		failed <- eachInput(in, func(input agentproto.Input) { inputs <- input })
	}()
	return inputs, failed
}

func eachInput(in io.Reader, handle func(agentproto.Input)) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			input, err := agentproto.ReadInput(line)
			if err != nil {
				return err
			}
			handle(input)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
