// Demo is an agent without a model. It echoes every message together with the data of its turn, so
// that an installation can be tried and tested without a key.
//
// It offers two models, quiet and loud, which answers in capital letters.
//
// A message may begin with instructions:
//
//	slow N     answer after N seconds; /stop cancels it
//	until NAME answer once the group's folder has a file of that name
//	frames N   answer in N frames
//	spend N    say that the turn costs N dollars, little by little
//	fold       answer what comes meanwhile together with this, after N
//	           seconds with slow N, else after two
//	work       show a plan and tools before the answer, in N seconds
//	           with slow N, else in two
//	stream     show the answer piece by piece, likewise
//	ask_permission  ask for permission to append a line to permitted.jsonl
//	           in the group's folder, and do it if it is allowed
//	ask_user A B …  ask which one of the words, or yes or no, before the answer
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
	if err := agentproto.Serve(context.Background(), os.Stdin, os.Stdout,
		agentproto.Agent{Answer: answer, Folds: true, Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
