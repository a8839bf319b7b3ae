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
	"context"
	"fmt"
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
	if err := agentproto.Serve(context.Background(), os.Stdin, os.Stdout, agentproto.Agent{Answer: answer, Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
