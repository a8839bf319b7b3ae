// Claude makes an agent of the Claude Code CLI. One CLI works for a run, in its stream-json mode:
// each turn's prompt becomes a user message, each result a frame, and the CLI's session is the
// conversation that the next run resumes. It works on one turn at a time: of several messages
// the CLI would put those that come while it uses a tool into the turn under way, and answer in
// one place what was asked in two.
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

func main() {
	if buildinfo.Print(os.Stdout, "claude", os.Args[1:]) {
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
		fmt.Fprintln(os.Stderr, "claude: what Claude Code leaves behind will not be ended:", err)
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

// readInputs passes on what in says until its end, or until a line that is no input; which of
// the two it was can be received once inputs is closed.
func readInputs(in io.Reader) (<-chan agentproto.Input, <-chan error) {
	inputs, failed := make(chan agentproto.Input), make(chan error, 1)
	go func() {
		defer close(inputs)
		failed <- eachInput(in, func(input agentproto.Input) { inputs <- input })
	}()
	return inputs, failed
}

func eachInput(in io.Reader, take func(agentproto.Input)) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			input, err := agentproto.ReadInput(line)
			if err != nil {
				return err
			}
			take(input)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
