package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

var errCrash = errors.New("crash requested")

// agent is one run of the agent.
type agent struct {
	out        io.Writer
	start      agentproto.Start
	newSession string      // to be sent with the next frame
	turns      []turn      // open ones, oldest first
	delay      *time.Timer // until turns[0] is answered; nil if there is none
}

type turn struct {
	id    string
	texts []string // of its messages
	order order    // of the last message
}

func newAgent(out io.Writer) *agent { return &agent{out: out} }

// serve answers turns until inputs is closed and all are answered.
func (a *agent) serve(inputs <-chan agentproto.Input) error {
	for inputs != nil || a.delay != nil {
		var due <-chan time.Time
		if a.delay != nil {
			due = a.delay.C
		}
		select {
		case in, open := <-inputs:
			if !open {
				inputs = nil
				continue
			}
			a.receive(in)
		case <-due:
			if err := a.answer(a.turns[0]); err != nil {
				return err
			}
			a.turns = a.turns[1:]
			a.startOldest()
		}
	}
	return nil
}

func (a *agent) receive(in agentproto.Input) {
	switch in := in.(type) {
	case agentproto.Start:
		a.start = in
		if in.SessionID == "" {
			a.newSession = "demo-" + strings.ToLower(rand.Text())
		}
		a.add(in.TurnID, in.Prompt)
	case agentproto.Message:
		a.add(in.TurnID, in.Prompt)
	case agentproto.Interrupt:
		a.turns = nil
		a.startOldest()
	}
}

func (a *agent) add(id, prompt string) {
	texts := messageTexts(prompt)
	t := turn{id: id, texts: texts}
	if len(texts) > 0 {
		t.order = parseOrder(texts[len(texts)-1])
	}
	a.turns = append(a.turns, t)
	if a.delay == nil {
		a.startOldest()
	}
}

// startOldest starts the delay of the oldest turn, if there is one.
func (a *agent) startOldest() {
	if a.delay != nil {
		a.delay.Stop()
		a.delay = nil
	}
	if len(a.turns) > 0 {
		a.delay = time.NewTimer(a.turns[0].order.slow)
	}
}

// maxCount is what "1/100 " takes at most, in bytes.
const maxCount = 16

func (a *agent) answer(t turn) error {
	switch {
	case t.order.crash:
		return errCrash
	case t.order.fail:
		return a.write(a.failure(t))
	case t.order.silent:
		return a.write(agentproto.Frame{Status: agentproto.StatusOK, TurnID: t.id})
	}
	room := min(agentproto.MaxResult, agentproto.MaxParts/max(t.order.frames-1, 1))
	text := agentproto.Cut(a.describe(t), room-maxCount)
	for i := 1; i < t.order.frames; i++ {
		more := agentproto.Frame{Status: agentproto.StatusOK, TurnID: t.id, Final: new(bool)}
		more.Result = fmt.Sprintf("%d/%d %s", i, t.order.frames, text)
		if err := a.write(more); err != nil {
			return err
		}
	}
	if t.order.frames > 1 {
		text = fmt.Sprintf("%d/%d %s", t.order.frames, t.order.frames, text)
	}
	return a.write(agentproto.Frame{Status: agentproto.StatusOK, Result: text, TurnID: t.id})
}

func (a *agent) failure(t turn) agentproto.Frame {
	f := agentproto.Frame{Status: agentproto.StatusError, Error: "error requested", TurnID: t.id, Kind: t.order.kind, RetryAfter: t.order.retry}
	if t.order.result {
		f.Result = agentproto.Cut(a.describe(t), agentproto.MaxResult)
	}
	return f
}

func (a *agent) write(f agentproto.Frame) error {
	f.NewSessionID, a.newSession = a.newSession, ""
	return agentproto.WriteFrame(a.out, f)
}

func (a *agent) describe(t turn) string {
	if t.order.system {
		return cmp.Or(a.start.System, "The start line has no system text.")
	}
	var b strings.Builder
	for _, text := range t.texts {
		fmt.Fprintf(&b, "You said: %s\n", text)
	}
	fmt.Fprintf(&b, "(topic %s · place %s · surface %s · turn %s)",
		orDash(a.start.Topic), orDash(a.start.EngageTopic), orDash(a.start.Surface), t.id)
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
