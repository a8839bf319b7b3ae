// Agent is the smallest possible agent: it answers every line of its input at once. The answer is the time
// when it had read the line, in Unix nanoseconds, and the number of messages in the line.
//
// A line with "work DURATION events N" is answered after that time, and before the answer come N events, spread evenly
// over it, as those of an agent that writes a text, uses tools and follows a plan.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"arizuko/pkg/agentproto"
)

func main() {
	if err := run(os.Stdin, os.Stdout, time.Now); err != nil {
		fmt.Fprintln(os.Stderr, "bench agent:", err)
		os.Exit(1)
	}
}

// work is an order that a line may have. Nothing else of the line is parsed, so that the agent's own work is not
// measured.
var work = regexp.MustCompile(`work ([0-9.]+m?s) events ([0-9]+)`)

// run answers lines until the end of in. A frame without a turn id answers the oldest unanswered turn.
func run(in io.Reader, out io.Writer, now func() time.Time) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		at := now().UnixNano()
		if asked := work.FindSubmatch(line); asked != nil {
			if err := perform(out, string(asked[1]), string(asked[2])); err != nil {
				return err
			}
		}
		result := fmt.Sprintf("%d %d", at, bytes.Count(line, []byte("<message id=")))
		if err := agentproto.WriteFrame(out, agentproto.Frame{Status: agentproto.StatusOK,
			Result: result}); err != nil {
			return err
		}
	}
}

// perform emits events over a time.
func perform(out io.Writer, duration, number string) error {
	length, err := time.ParseDuration(duration)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	began := time.Now()
	for i := range n {
		<-time.After(time.Until(began.Add(length * time.Duration(i) / time.Duration(n))))
		if err := agentproto.WriteEvent(out, event(i)); err != nil {
			return err
		}
	}
	<-time.After(time.Until(began.Add(length)))
	return nil
}

// event is the nth event: of ten, seven are of the text, two of a tool and one of the plan or of what was used.
func event(n int) agentproto.Event {
	const wordsEach = 3
	switch n % 10 {
	case 2, 3:
		status := agentproto.ToolRunning
		if n%10 == 3 {
			status = agentproto.ToolDone
		}
		return agentproto.Event{Tool: &agentproto.Tool{ID: fmt.Sprint("tool", n/10),
			Title: fmt.Sprintf("Read file-%d.go", n/10), Kind: "read", Status: status}}
	case 9:
		if n%20 == 9 {
			return agentproto.Event{Usage: &agentproto.Usage{Input: int64(100 * n), Output: int64(10 * n),
				CostUSD: float64(n) / 1000}}
		}
		return agentproto.Event{Plan: &agentproto.Plan{Entries: []agentproto.Step{
			{Content: "Look around", Status: agentproto.StepCompleted},
			{Content: fmt.Sprintf("Change part %d", n/20), Status: agentproto.StepInProgress},
			{Content: "Run the tests", Status: agentproto.StepPending},
		}}}
	}
	text := string(bytes.Repeat([]byte("some more "), wordsEach*(n+1)))
	return agentproto.Event{Text: &text}
}
