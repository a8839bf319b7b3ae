// Demo is an agent without a model. It echoes every message together with the data of its turn, so
// that an installation can be tried and tested without a key.
//
// A message may begin with instructions:
//
//	slow N     answer after N seconds; /stop cancels it
//	frames N   answer in N frames
//	silent     answer nothing
//	system     answer with the system text of the run
//	crash      exit with code 1, without a frame
//	error      report an error; a word after it says which:
//	           transient, transient N (retry after N seconds), permanent,
//	           session, or result (an error with an answer)
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/buildinfo"
)

const usage = `usage: demo [--help | --version]
An agent without a model, which gated runs: it reads inputs from stdin and writes frames to stdout.`

func main() {
	if args := os.Args[1:]; buildinfo.Print(os.Stdout, "demo", args) || buildinfo.Help(os.Stdout, usage, args) {
		return
	}
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run answers the inputs read from in until its end. It reads on while an answer is delayed, since an
// interrupt must overtake it.
func run(in io.Reader, out io.Writer) error {
	inputs := make(chan agentproto.Input)
	readErr := make(chan error, 1)
	go func() {
		readErr <- readInputs(in, inputs)
		close(inputs)
	}()
	if err := newAgent(out).serve(inputs); err != nil {
		return err
	}
	return <-readErr
}

// readInputs sends the inputs read from in. It returns nil at the end of in.
func readInputs(in io.Reader, inputs chan<- agentproto.Input) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			input, err := agentproto.ReadInput(line)
			if err != nil {
				return err
			}
			inputs <- input
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
