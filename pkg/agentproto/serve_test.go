package agentproto_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
)

func Example() {
	in := strings.NewReader(`{"type":"start","turnId":"1","prompt":"hello","sessionId":""}` + "\n")
	err := agentproto.Serve(context.Background(), in, os.Stdout, agentproto.Agent{
		Answer: func(_ context.Context, t *agentproto.Turn) (agentproto.Reply, error) {
			return agentproto.Reply{Text: "You said: " + t.Prompt, Session: "mine"}, nil
		},
	})
	fmt.Println(err)
	// Output:
	// ---ARIZUKO_OUTPUT_START---
	// {"status":"ok","result":"You said: hello","newSessionId":"mine","turnId":"1"}
	// ---ARIZUKO_OUTPUT_END---
	// <nil>
}

type (
	frame = agentproto.Frame
)

// run is an agent at work.
type run struct {
	t    *testing.T
	in   *io.PipeWriter
	out  bytes.Buffer // to be read after done
	log  bytes.Buffer
	end  context.CancelFunc
	err  error // valid once done is closed
	done chan struct{}
}

func start(t *testing.T, a agentproto.Agent) *run {
	t.Helper()
	r, w := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	s := &run{t: t, in: w, end: end, done: make(chan struct{})}
	a.Log = &s.log
	go func() {
		defer close(s.done)
		s.err = agentproto.Serve(ctx, r, &s.out, a)
		r.Close()
	}()
	return s
}

func (s *run) send(inputs ...agentproto.Input) {
	s.t.Helper()
	for _, in := range inputs {
		line, err := agentproto.Encode(in)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.in.Write(line); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			s.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// want closes the input, and fails the test unless the run ends with that error and has written these frames.
func (s *run) want(err error, frames ...frame) {
	s.t.Helper()
	s.in.Close()
	<-s.done
	if !errors.Is(s.err, err) {
		s.t.Errorf("error %v, want %v", s.err, err)
	}
	var got []frame
	for scanner := agentproto.NewScanner(&s.out, io.Discard); ; {
		f, err := scanner.NextFrame()
		if err == io.EOF {
			break
		}
		if err != nil {
			s.t.Fatal(err)
		}
		got = append(got, f)
	}
	if diff := cmp.Diff(frames, got); diff != "" {
		s.t.Errorf("frames (-want +got):\n%s", diff)
	}
}

func ok(id, text, session string) frame {
	return frame{Status: agentproto.StatusOK, TurnID: id, Result: text, NewSessionID: session}
}

func message(id string) agentproto.Message {
	return agentproto.Message{TurnID: id, Prompt: "prompt " + id}
}

func TestServe_Turns_AnsweredInOrderWithSessionAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Answer: func(_ context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			r := agentproto.Reply{Text: turn.Prompt + " of " + turn.Start.GroupFolder + ", session " + turn.Session}
			if turn.ID == "1" {
				r.Session = "new"
			}
			return r, nil
		}})
		s.send(agentproto.Start{TurnID: "1", Prompt: "prompt 1", SessionID: "old", GroupFolder: "acme"}, message("2"), message("3"))
		s.want(nil, ok("1", "prompt 1 of acme, session old", "new"), ok("2", "prompt 2 of acme, session new", ""), ok("3", "prompt 3 of acme, session new", ""))
	})
}

func TestServe_Interrupt_EndsTurnAndDropsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause, sent error
		s := start(t, agentproto.Agent{Answer: func(ctx context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			if turn.ID == "1" {
				<-ctx.Done()
				cause, sent = context.Cause(ctx), turn.Send(agentproto.Reply{Text: "too late"})
			}
			return agentproto.Reply{Text: "answer"}, nil
		}})
		s.send(agentproto.Interrupt{}, agentproto.Start{TurnID: "1"}, message("2"), agentproto.Interrupt{}, message("3"))
		s.want(nil, ok("3", "answer", ""))
		if !errors.Is(cause, agentproto.ErrInterrupted) || !errors.Is(sent, agentproto.ErrInterrupted) {
			t.Errorf("cause %v, error of Send %v", cause, sent)
		}
	})
}

// A turn that the agent fails after it was interrupted has not failed.
func TestServe_ErrorOfInterruptedTurn_IsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Answer: func(ctx context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			if turn.ID == "1" {
				<-ctx.Done()
				return agentproto.Reply{}, ctx.Err()
			}
			return agentproto.Reply{}, nil
		}})
		s.send(agentproto.Start{TurnID: "1"}, agentproto.Interrupt{}, message("2"))
		s.want(nil, ok("2", "", ""))
	})
}

func TestServe_Failures_HaveKindAndEndTheRun(t *testing.T) {
	plain, long := errors.New("plain"), strings.Repeat("x", agentproto.MaxError+1)
	for name, c := range map[string]struct {
		err   error
		reply agentproto.Reply
		want  frame
	}{
		"plain":     {plain, agentproto.Reply{Session: "s"}, frame{Kind: "transient", Error: "plain", NewSessionID: "s"}},
		"session":   {&agentproto.Failure{Kind: "session", Text: "lost"}, agentproto.Reply{}, frame{Kind: "session", Error: "lost"}},
		"wrapped":   {fmt.Errorf("a: %w", &agentproto.Failure{Kind: "permanent", Text: "key", RetryAfter: time.Second}), agentproto.Reply{}, frame{Kind: "permanent", Error: "key"}},
		"no kind":   {&agentproto.Failure{Text: "odd"}, agentproto.Reply{}, frame{Error: "odd"}},
		"long":      {errors.New(long), agentproto.Reply{}, frame{Kind: "transient", Error: long[1:]}},
		"delay":     {&agentproto.Failure{Kind: "transient", Text: "busy", RetryAfter: 40 * time.Second}, agentproto.Reply{}, frame{Kind: "transient", Error: "busy", RetryAfter: 40}},
		"long wait": {&agentproto.Failure{Kind: "transient", Text: "busy", RetryAfter: 99 * time.Hour}, agentproto.Reply{}, frame{Kind: "transient", Error: "busy", RetryAfter: 3600}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, agentproto.Agent{Answer: func(context.Context, *agentproto.Turn) (agentproto.Reply, error) { return c.reply, c.err }})
				s.send(agentproto.Start{TurnID: "1"}, message("2"))
				c.want.Status, c.want.TurnID = agentproto.StatusError, "1"
				s.want(c.err, c.want)
			})
		})
	}
}

func TestServe_ErrorWithText_IsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Answer: func(context.Context, *agentproto.Turn) (agentproto.Reply, error) {
			return agentproto.Reply{Text: "half of it"}, errors.New("cut off")
		}})
		s.send(agentproto.Start{TurnID: "1"}, message("2"))
		f := frame{Status: agentproto.StatusError, TurnID: "1", Result: "half of it", Error: "cut off", Kind: "transient"}
		second := f
		second.TurnID = "2"
		s.want(nil, f, second)
	})
}

func TestServe_Terminated_ReportsTurnAndWaitsForAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returned := false
		s := start(t, agentproto.Agent{Answer: func(ctx context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, agentproto.ErrTerminated) {
				t.Errorf("cause %v", cause)
			}
			if err := turn.Send(agentproto.Reply{Text: "too late"}); err == nil {
				t.Error("a message after the end")
			}
			returned = true
			return agentproto.Reply{}, ctx.Err()
		}})
		s.send(agentproto.Start{TurnID: "1"}, message("2"))
		s.end()
		s.want(agentproto.ErrTerminated, frame{Status: agentproto.StatusError, TurnID: "1", Kind: "transient", Error: "the agent was terminated during a turn"})
		if !returned {
			t.Error("Serve has not waited")
		}
	})
	synctest.Test(t, func(t *testing.T) { // without a turn
		s := start(t, agentproto.Agent{})
		s.end()
		s.want(agentproto.ErrTerminated)
	})
}

func TestServe_Messages_BeforeAndAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last *agentproto.Turn
		s := start(t, agentproto.Agent{
			Answer: func(_ context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
				last = turn
				return agentproto.Reply{Text: "answer"}, turn.Send(agentproto.Reply{Text: "part", Session: "s"})
			},
			Idle: func(ctx context.Context) error {
				if last != nil {
					return last.Send(agentproto.Reply{Text: "more"})
				}
				<-ctx.Done()
				return nil
			},
		})
		s.send(agentproto.Start{TurnID: "1"})
		part := ok("1", "part", "s")
		part.Final = new(bool)
		s.want(nil, part, ok("1", "answer", ""), ok("1", "more", ""))
	})
}

// Idle runs between turns only, ends for a turn and for the end of input, and its error ends the run.
func TestServe_Idle_BetweenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		s := start(t, agentproto.Agent{
			Answer: func(_ context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
				calls = append(calls, turn.ID)
				return agentproto.Reply{}, nil
			},
			Idle: func(ctx context.Context) error {
				calls = append(calls, "idle")
				<-ctx.Done()
				calls = append(calls, "ended")
				return nil
			},
		})
		s.send(agentproto.Start{TurnID: "1"})
		s.send(message("2"))
		s.want(nil, ok("1", "", ""), ok("2", "", ""))
		if got := strings.Join(calls, " "); got != "idle ended 1 idle ended 2 idle ended" {
			t.Errorf("calls %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		s := start(t, agentproto.Agent{Idle: func(context.Context) error { return gone }})
		s.want(gone)
	})
}

func TestServe_Lines_LaterTypesIgnored_InvalidEndsInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Answer: func(context.Context, *agentproto.Turn) (agentproto.Reply, error) {
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			return agentproto.Reply{Text: "answer"}, nil
		}})
		for _, line := range []string{`{"type":"later","x":1}`, "", `{"type":"message","turnId":"1","x":1}`, "nonsense"} {
			if _, err := io.WriteString(s.in, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		<-s.done
		if s.err == nil || !strings.Contains(s.err.Error(), "invalid character") || !strings.Contains(s.log.String(), `unknown input type "later"`) {
			t.Errorf("error %v, log %q", s.err, &s.log)
		}
		s.err = nil
		s.want(nil, ok("1", "answer", ""))
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// No name of a tool or model, and no question, is too long for an event.
func TestServe_LongTexts_AreCut(t *testing.T) {
	long := strings.Repeat("\x01", 2*agentproto.MaxEvent)
	many := make([]agentproto.Step, 2*agentproto.MaxSteps)
	models := make([]agentproto.Model, 2*agentproto.MaxModels)
	for i := range many {
		many[i] = agentproto.Step{Content: long, Status: agentproto.StepStatus(long)}
	}
	for i := range models {
		models[i] = agentproto.Model{ID: fmt.Sprint(i), Name: long, Description: long}
	}
	events := []agentproto.Event{
		{Text: &long},
		{Tool: &agentproto.Tool{ID: "t", Title: long, Kind: long, Status: agentproto.ToolDone, Input: long}},
		{Plan: &agentproto.Plan{Entries: many}},
		{Models: &agentproto.Models{Models: models}},
		{Ask: &agentproto.Ask{ID: "q", Question: long, Detail: long, Options: []string{"a", "b"}}},
	}
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Answer: func(_ context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			for _, e := range events {
				if err := turn.Emit(e); err != nil {
					return agentproto.Reply{}, err
				}
			}
			return agentproto.Reply{Text: "done"}, turn.Offer(*events[3].Models)
		}})
		s.send(agentproto.Start{TurnID: "1", Prompt: "a"})
		read := 0
		for line := range strings.Lines(s.out.String()) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, agentproto.EventMark) {
				if _, err := agentproto.ReadEvent([]byte(line)); err != nil {
					t.Error(err)
				}
				read++
			}
		}
		if read != len(events)+1 {
			t.Errorf("%d events", read)
		}
		s.want(nil, ok("1", "done", ""))
	})
	if len(many[0].Content) != len(long) || len(models[0].Name) != len(long) {
		t.Error("what an event refers to was changed")
	}
}

func TestServe_OutputGone_Ends(t *testing.T) {
	in := strings.NewReader(`{"type":"start","turnId":"1"}`)
	err := agentproto.Serve(t.Context(), in, brokenPipe{}, agentproto.Agent{
		Answer: func(context.Context, *agentproto.Turn) (agentproto.Reply, error) { return agentproto.Reply{}, nil },
	})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

func foldable(id string) agentproto.Message {
	m := message(id)
	m.Fold = true
	return m
}

func TestServe_NewerTurn_IsFoldedIntoTheOneUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Folds: true, Answer: func(_ context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			text := turn.Prompt
			for end := time.After(time.Second); ; {
				select {
				case newer := <-turn.Newer():
					for range 2 {
						if err := turn.Fold(newer); err != nil {
							return agentproto.Reply{}, err
						}
					}
					text += ", " + newer.Prompt
					if newer.ID == "2" {
						if err := turn.Send(agentproto.Reply{Text: "part"}); err != nil {
							return agentproto.Reply{}, err
						}
					}
				case <-end:
					return agentproto.Reply{Text: text}, nil
				}
			}
		}})
		s.send(agentproto.Start{TurnID: "1", Prompt: "prompt 1"}, foldable("2"), message("3"), foldable("4"))
		time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // in a bubble: now turn 3 is under way
		s.send(foldable("5"))
		s.want(nil,
			frame{Status: "ok", TurnIDs: []string{"1", "2"}, Result: "part", Final: new(bool)},
			frame{Status: "ok", TurnIDs: []string{"1", "2", "4"}, Result: "prompt 1, prompt 2, prompt 4"},
			frame{Status: "ok", TurnIDs: []string{"3", "5"}, Result: "prompt 3, prompt 5"})
	})
}

// An agent knows from the start that it can fold, or learns it in its first turn.
func TestServe_Folds_AnnouncesItOnceAndSaysWhatItHasTakenIn(t *testing.T) {
	for _, learns := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, agentproto.Agent{Folds: !learns, Answer: func(_ context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
				for range 2 {
					if err := turn.AnnounceFold(); err != nil {
						return agentproto.Reply{}, err
					}
				}
				return agentproto.Reply{}, turn.Fold(<-turn.Newer())
			}})
			s.send(agentproto.Start{TurnID: "1"})
			s.send(foldable("2"))
			s.in.Close()
			<-s.done
			want := "\n" + agentproto.EventMark + ` {"type":"features","fold":true}` + "\n" +
				"\n" + agentproto.EventMark + ` {"type":"status","turnId":"2","status":"running"}` + "\n" +
				"\n" + agentproto.FrameStart + "\n" + `{"status":"ok","result":"","turnIds":["1","2"]}` + "\n" + agentproto.FrameEnd + "\n"
			if diff := cmp.Diff(want, s.out.String()); diff != "" || s.err != nil {
				t.Errorf("%v, output (-want +got):\n%s", s.err, diff)
			}
		})
	}
}

// Turns that were offered and not folded are turns of their own, and those of a turn that fails are asked again.
func TestServe_OfferedTurn_IsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Folds: true, Answer: func(_ context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			if turn.ID == "2" {
				if err := turn.Fold(<-turn.Newer()); err != nil {
					return agentproto.Reply{}, err
				}
				return agentproto.Reply{}, errBroken
			}
			return agentproto.Reply{Text: turn.Prompt}, nil
		}})
		s.send(agentproto.Start{TurnID: "1", Prompt: "prompt 1"}, foldable("2"), foldable("3"), foldable("4"))
		s.want(errBroken, ok("1", "prompt 1", ""),
			frame{Status: "error", Kind: agentproto.KindTransient, Error: errBroken.Error(), TurnID: "2"})
	})
}

func TestServe_Interrupt_DropsFoldedTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late error
		s := start(t, agentproto.Agent{Folds: true, Answer: func(ctx context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			if turn.ID == "4" {
				return agentproto.Reply{Text: "after"}, nil
			}
			if err := turn.Fold(<-turn.Newer()); err != nil {
				return agentproto.Reply{}, err
			}
			<-ctx.Done()
			late = turn.Fold(<-turn.Newer())
			return agentproto.Reply{Text: "too late"}, nil
		}})
		s.send(agentproto.Start{TurnID: "1"}, foldable("2"), foldable("3"))
		s.send(agentproto.Interrupt{}, message("4")) // now that turn 2 is folded
		s.want(nil, ok("4", "after", ""))
		if !errors.Is(late, agentproto.ErrInterrupted) {
			t.Errorf("folded after the interrupt: %v", late)
		}
	})
}

var errBroken = errors.New("broken")

// A model that thinks gives signs which users do not see: one in a while says that the agent works.
func TestTurn_Alive_SaysSoOnceInAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Answer: func(_ context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			for range 50 {
				if err := turn.Alive(); err != nil {
					return agentproto.Reply{}, err
				}
				<-time.After(time.Second)
			}
			return agentproto.Reply{Text: "done"}, nil
		}})
		s.send(agentproto.Start{TurnID: "1"})
		s.in.Close()
		<-s.done
		if n := strings.Count(s.out.String(), `"status":"running"`); n != 2 {
			t.Errorf("%d signs in 50 s, want 2: %s", n, &s.out)
		}
	})
}
