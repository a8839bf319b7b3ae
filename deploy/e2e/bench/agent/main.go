// Agent is the least an agent can be: it answers every line of its input at
// once. Its answer is when it had the line, in Unix nanoseconds, and how many
// messages the line holds.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"arizuko/pkg/agentproto"
)

func main() {
	if err := run(os.Stdin, os.Stdout, time.Now); err != nil {
		fmt.Fprintln(os.Stderr, "bench agent:", err)
		os.Exit(1)
	}
}

// run answers until the end of in. It does not parse the lines, so that what
// is measured is not the agent: the oldest unanswered turn is always the one
// that a frame without a name answers.
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
		result := fmt.Sprintf("%d %d", at, bytes.Count(line, []byte("<message id=")))
		if err := agentproto.WriteFrame(out, agentproto.Frame{Status: agentproto.StatusOK, Result: result}); err != nil {
			return err
		}
	}
}
