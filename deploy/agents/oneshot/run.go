package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"arizuko/pkg/agentproto"
)

// lostNote stands in front of the first answer when the conversation could not be resumed.
const lostNote = "(I have lost our earlier conversation and start afresh.)"

// errStopped is the end of a run that was told to terminate.
var errStopped = errors.New("told to stop")

// run is the turns of one run, oldest first, and the process that works on one of them.
type run struct {
	cli     *cli
	out     io.Writer
	session string
	waiting []turn
	work    *work // nil between turns
}

type turn struct{ id, prompt string }

// work is a turn that the command works on.
type work struct {
	turn
	stop    context.CancelFunc
	done    chan outcome
	dropped bool // nobody waits for its answer any more
}

func newRun(c *cli, out io.Writer) *run { return &run{cli: c, out: out} }

// serve works until inputs is closed and everything is answered, or until a turn fails: what
// follows it is then for another run.
func (r *run) serve(ctx context.Context, inputs <-chan agentproto.Input) error {
	defer r.leave()
	for inputs != nil || r.work != nil {
		var done chan outcome
		if r.work != nil {
			done = r.work.done
		}
		select {
		case in, open := <-inputs:
			if !open {
				inputs = nil
			}
			r.take(in)
		case o := <-done:
			if err := r.answer(o); err != nil {
				return err
			}
		case <-ctx.Done():
			return errStopped
		}
		r.next(ctx)
	}
	return nil
}

func (r *run) take(in agentproto.Input) {
	switch in := in.(type) {
	case agentproto.Start:
		r.session = in.SessionID
		r.waiting = append(r.waiting, turn{in.TurnID, in.Prompt})
	case agentproto.Message:
		r.waiting = append(r.waiting, turn{in.TurnID, in.Prompt})
	case agentproto.Interrupt:
		r.waiting = nil
		if r.work != nil {
			r.work.dropped = true
			r.work.stop()
		}
	}
}

// next begins to work on the oldest turn, if there is one and nothing else to do.
func (r *run) next(ctx context.Context) {
	if r.work != nil || len(r.waiting) == 0 {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	w := &work{turn: r.waiting[0], stop: stop, done: make(chan outcome, 1)}
	r.waiting = r.waiting[1:]
	r.work = w
	session := r.session
	go func() { w.done <- r.cli.ask(ctx, session, w.prompt) }()
}

// answer writes the frame of the turn that was worked on.
func (r *run) answer(o outcome) error {
	w := r.work
	w.stop()
	r.work = nil
	if w.dropped {
		return nil
	}
	if o.failure != "" {
		frame := agentproto.Frame{Status: agentproto.StatusError, TurnID: w.id, Error: cut(o.failure)}
		return errors.Join(errors.New(o.failure), agentproto.WriteFrame(r.out, frame))
	}
	if o.lost && o.text != "" {
		o.text = lostNote + "\n\n" + o.text
	}
	if o.session != "" {
		r.session = o.session
	}
	return agentproto.WriteFrame(r.out, agentproto.Frame{
		Status: agentproto.StatusOK, TurnID: w.id, NewSessionID: o.session, Result: cut(o.text),
	})
}

// leave ends what is still at work.
func (r *run) leave() {
	if r.work != nil {
		r.work.stop()
		<-r.work.done
	}
}

// maxResult is the longest answer that fits into a frame however it is escaped: six bytes a byte.
const maxResult = agentproto.MaxFrame / 8

// cut shortens text to maxResult bytes and says so.
func cut(text string) string {
	if len(text) <= maxResult {
		return text
	}
	note := fmt.Sprintf("\n\n[cut off here: the whole answer has %d bytes]", len(text))
	end := maxResult - len(note)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + note
}
