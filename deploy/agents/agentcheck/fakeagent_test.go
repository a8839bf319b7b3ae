package main

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
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/agentproto"
)

// behaviourEnv makes the test binary an agent with this behaviour.
const behaviourEnv = "AGENT_BEHAVIOUR"

func TestMain(m *testing.M) {
	if how := os.Getenv(behaviourEnv); how != "" {
		if err := behave(how, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// fakeAgent is an agent with a behaviour.
func fakeAgent(how string) Agent {
	return Agent{Command: "exec " + quoted([]string{os.Args[0]}), Env: []string{
		behaviourEnv + "=" + how,
		"GORACE=atexit_sleep_ms=0", // it would take a second to exit
	}, Grace: 20 * time.Second}
}

var errAsAsked = errors.New("as asked")

// behave answers every turn with the length of its prompt, except as how says.
func behave(how string, in io.Reader, out io.Writer) error {
	if how == "ignores input" {
		_, _ = io.Copy(io.Discard, in)
		return nil
	}
	if how == "ignores SIGTERM" {
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
			if how == "exits at unknown line" {
				return err
			}
			continue
		}
		f := agentproto.Frame{Status: agentproto.StatusOK}
		switch input := input.(type) {
		case agentproto.Start:
			f.TurnID, f.Result = input.TurnID, fmt.Sprint(len(input.Prompt))
			f.NewSessionID = cmp.Or(input.SessionID, "s")
			if err := offer(how, input.Model, out); err != nil {
				return err
			}
			if how == "refuses the model" && input.Model != "" {
				f.Status, f.Error, f.Kind = agentproto.StatusError, "not for you", agentproto.KindPermanent
			}
			if how == "exits at a session" && input.SessionID != "" {
				return errAsAsked
			}
			if strings.HasPrefix(how, "reports a session that is gone") && input.SessionID != "" {
				f = agentproto.Frame{Status: agentproto.StatusError, Error: "gone", TurnID: input.TurnID, Kind: agentproto.KindSession}
				if _, kind, found := strings.Cut(how, " as "); found {
					f.Kind = agentproto.Kind(kind)
				} else if strings.HasSuffix(how, "without a kind") {
					f.Kind = ""
				}
			}
		case agentproto.Answer:
			f.TurnID, f.Result, f.NewSessionID = input.TurnID, "chosen: "+input.Option+" "+string(input.Reason), "s"
		case agentproto.Message:
			f.TurnID, f.Result = input.TurnID, fmt.Sprint(len(input.Prompt))
		default:
			if how == "answers the interrupt" { // while it works on turn 1
				f.TurnID, f.NewSessionID = "1", "s"
				return agentproto.WriteFrame(out, f)
			}
			continue
		}
		if how == "answers the interrupt" {
			continue
		}
		if _, answered := input.(agentproto.Answer); how == "asks" && !answered {
			ask := agentproto.Ask{ID: "q", Question: "Which?", Options: []string{"red", "green"}}
			if err := agentproto.WriteEvent(out, agentproto.Event{TurnID: f.TurnID, Ask: &ask}); err != nil {
				return err
			}
			continue
		}
		switch n++; {
		case n == 2 && how == "exits at turn 2":
			return errAsAsked
		case n == 2 && strings.HasPrefix(how, "fails turn 2"):
			f.Status, f.Error = agentproto.StatusError, "no luck"
			switch how {
			case "fails turn 2":
				f.Result = ""
			case "fails turn 2, with a result":
				f.Result = "half of it"
			case "fails turn 2, transient":
				f.Result, f.Kind, f.RetryAfter = "", agentproto.KindTransient, 7
			case "fails turn 2, permanent":
				f.Result, f.Kind = "", agentproto.KindPermanent
			}
		}
		if err := answerAs(how, f, out); err != nil || how == "exits after an answer" {
			return err
		}
	}
	switch how {
	case "does not exit", "ignores SIGTERM":
		<-make(chan int)
	case "exits with an error":
		return errAsAsked
	case "answers after the end":
		return agentproto.WriteFrame(out, agentproto.Frame{Status: agentproto.StatusOK, Result: "bye"})
	}
	return nil
}

// offer says which models there are, of an agent that has some.
func offer(how, model string, out io.Writer) error {
	models := agentproto.Models{Current: "small", Models: []agentproto.Model{{ID: "small", Name: "Small"}, {ID: "big", Name: "Big"}}}
	switch {
	case how == "offers models" && model != "" && model == os.Getenv("AGENT_MODEL"):
		models.Current = model
	case how != "offers models" && how != "ignores the model" && how != "refuses the model":
		return nil
	}
	return agentproto.WriteEvent(out, agentproto.Event{Models: &models})
}

func answerAs(how string, f agentproto.Frame, out io.Writer) error {
	body := `{"status":"ok","result":"hi","turnId":"` + f.TurnID + `"}`
	switch how {
	case "names no turn":
		f.TurnID, f.NewSessionID = "", ""
	case "names another turn":
		f.TurnID = "turn-" + f.TurnID
	case "never final":
		f.Final = new(bool)
	case "reports errors":
		f = agentproto.Frame{Status: agentproto.StatusError, Error: "no key", TurnID: f.TurnID}
	case "malformed event":
		fmt.Fprintln(out, agentproto.EventMark+` {"type":"status","status":"asleep"}`)
	case "event of another turn":
		if err := agentproto.WriteEvent(out, agentproto.Event{TurnID: "turn-" + f.TurnID, Status: agentproto.StatusRunning}); err != nil {
			return err
		}
	case "indents delimiters":
		fmt.Fprintf(out, "  %s\n%s\n  %s\n", agentproto.FrameStart, body, agentproto.FrameEnd)
		return nil
	case "no delimiters":
		fmt.Fprintln(out, body)
		return nil
	case "invalid JSON":
		fmt.Fprintf(out, "%s\n{\"result\":\"hi\n%s\n", agentproto.FrameStart, agentproto.FrameEnd)
		return nil
	case "too large":
		fmt.Fprintf(out, "%s\n%s\n%s\n", agentproto.FrameStart, strings.Repeat("x", 2*agentproto.MaxFrame), agentproto.FrameEnd)
		return nil
	case "no frames":
		return nil
	}
	fmt.Fprintln(os.Stderr, "answered turn", f.TurnID)
	return agentproto.WriteFrame(out, f)
}
