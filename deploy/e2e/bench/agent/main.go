// Agent is the smallest possible agent: it answers every line of its input at once. The answer is the time
// when it had read the line, in Unix nanoseconds, and the number of messages in the line.
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

// run answers lines until the end of in. It does not parse them, so that the agent's own work is not
// measured: a frame without a turn id answers the oldest unanswered turn.
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
