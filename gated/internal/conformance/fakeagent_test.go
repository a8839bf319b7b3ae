package conformance

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"arizuko/pkg/agentproto"
)

// manners makes an agent of the test's own program, and says how it behaves.
const behaviourVariable = "AGENT_MANNERS"

func TestMain(m *testing.M) {
	if how := os.Getenv(behaviourVariable); how != "" {
		if err := behave(how, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// standIn is the agent of such manners.
func fakeAgent(how string) Agent {
	return Agent{Command: "exec " + quoted([]string{os.Args[0]}), Env: []string{
		behaviourVariable + "=" + how,
		"GORACE=atexit_sleep_ms=0", // it would take a second to exit
	}}
}

var errAsAsked = errors.New("as it was told")

// behave answers every turn with its prompt's length, but for one thing.
func behave(how string, in io.Reader, out io.Writer) error {
	if how == "deaf" {
		_, _ = io.Copy(io.Discard, in)
		return nil
	}
	if how == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	lines := bufio.NewReader(in)
	for n := 0; ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		input, err := agentproto.ReadInput(line)
		if err != nil {
			if how == "narrow" {
				return err
			}
			continue
		}
		f := agentproto.Frame{Status: agentproto.StatusOK}
		switch input := input.(type) {
		case agentproto.Start:
			f.TurnID, f.Result = input.TurnID, fmt.Sprint(len(input.Prompt))
			f.NewSessionID = cmp.Or(input.SessionID, "s")
			if how == "forgetful" && input.SessionID != "" {
				return errAsAsked
			}
		case agentproto.Message:
			f.TurnID, f.Result = input.TurnID, fmt.Sprint(len(input.Prompt))
		default:
			if how == "late" { // it was at work on turn 1
				f.TurnID, f.NewSessionID = "1", "s"
				return agentproto.WriteFrame(out, f)
			}
			continue
		}
		if how == "late" {
			continue
		}
		switch n++; {
		case n == 2 && how == "short-lived":
			return errAsAsked
		case n == 2 && how == "fickle":
			f.Status, f.Error = agentproto.StatusError, "no luck"
		}
		if err := answerAs(how, f, out); err != nil || how == "one-shot" {
			return err
		}
	}
	switch how {
	case "staying", "stubborn":
		<-make(chan int)
	case "sore":
		return errAsAsked
	case "chatty":
		return agentproto.WriteFrame(out, agentproto.Frame{Status: agentproto.StatusOK, Result: "bye"})
	}
	return nil
}

func answerAs(how string, f agentproto.Frame, out io.Writer) error {
	body := `{"status":"ok","result":"hi","turnId":"` + f.TurnID + `"}`
	switch how {
	case "nameless":
		f.TurnID, f.NewSessionID = "", ""
	case "mistaken":
		f.TurnID = "turn-" + f.TurnID
	case "endless":
		f.Final = new(bool)
	case "failing":
		f = agentproto.Frame{Status: agentproto.StatusError, Error: "no key", TurnID: f.TurnID}
	case "indenting":
		fmt.Fprintf(out, "  %s\n%s\n  %s\n", agentproto.FrameStart, body, agentproto.FrameEnd)
		return nil
	case "bare":
		fmt.Fprintln(out, body)
		return nil
	case "broken":
		fmt.Fprintf(out, "%s\n{\"result\":\"hi\n%s\n", agentproto.FrameStart, agentproto.FrameEnd)
		return nil
	case "huge":
		fmt.Fprintf(out, "%s\n%s\n%s\n", agentproto.FrameStart, strings.Repeat("x", 2*agentproto.MaxFrame), agentproto.FrameEnd)
		return nil
	case "silent":
		return nil
	}
	fmt.Fprintln(os.Stderr, "answered turn", f.TurnID)
	return agentproto.WriteFrame(out, f)
}
