package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"arizuko/deploy/agents/internal/failure"
	"arizuko/deploy/agents/internal/pictures"
	"arizuko/deploy/agents/internal/turn"
	"arizuko/pkg/agentproto"
)

const (
	// cancelTimeout is how long the agent may take to end a turn that a user has stopped. Then it is ended itself.
	cancelTimeout = 5 * time.Second
	// steerTimeout is how long after the end of a turn the agent may take to say whether it has taken a message in.
	steerTimeout = 5 * time.Second
	// lateDelay is how long an agent has been silent when it has said all of a turn: some say the last of it after
	// their response to the prompt. maxLate bounds that for one which goes on and on.
	lateDelay = 200 * time.Millisecond
	maxLate   = 2 * time.Second
)

// run is one run of this program. The agent gets one turn at a time, and those that it takes into the running one.
type run struct {
	ctx     context.Context //nolint:containedctx // of the program: its end terminates the agent
	cfg     Config
	stderr  io.Writer
	agent   *process // nil before the first turn and after its end
	ready   bool     // the agent has opened the session
	can     initialized
	begun   bool   // a turn has begun
	session string // the agent's name of the conversation, "" for none
	fresh   bool   // no prompt of the session has been sent
	kept    bool   // the agent has stored the session: it resumed it, or has answered a turn of it
	late    bool   // updates about the past may still come
	cost    sessionCost
	unclear map[string]bool // ids of turns that the agent may or may not have taken in
	running *runningTurn    // nil between turns
}

// runningTurn is a turn that the agent works on.
type runningTurn struct {
	*turn.Turn
	prompted bool            // the agent may have got the prompt
	response *message        // to the prompt
	steers   map[string]bool // ids of turns that were given to the agent, which has not answered yet
	timeout  <-chan time.Time
	lateEnd  time.Time // of maxLate
	settled  bool      // the agent has said all of it
	dropped  bool      // by an interrupt: its answer is not wanted

	open   map[string]message // requests that wait for users, by id
	denied bool               // users have denied a permission

	said  said
	shown shown
	ended bool // with the following
	reply agentproto.Reply
	err   error
}

func newRun(ctx context.Context, cfg Config, stderr io.Writer) *run {
	return &run{ctx: ctx, cfg: cfg, stderr: stderr, unclear: map[string]bool{}}
}

// answer answers a turn. An interrupted one ends when the agent has ended it.
func (r *run) answer(ctx context.Context, t *agentproto.Turn) (agentproto.Reply, error) {
	if !r.begun {
		r.begun, r.session = true, t.Session
		if t.Start.MCP != nil {
			r.cfg.hide(t.Start.MCP.Token)
		}
	}
	if r.unclear[t.ID] {
		return agentproto.Reply{}, new(failure.Transient("%s has not answered %s: it may have got the message, or not",
			r.cfg.name(), methodSteer))
	}
	inner, end := turn.New(ctx, t)
	defer end()
	w := &runningTurn{Turn: inner, open: map[string]message{}, steers: map[string]bool{}}
	r.running = w
	defer func() {
		r.running = nil
		r.cost.keep()
	}()
	if err := r.open(ctx); err != nil {
		return r.failed(err)
	}
	if err := r.prompt(); err != nil {
		return r.failed(err)
	}
	interrupted := ctx.Done()
	for !w.ended {
		var err error
		select {
		case m, more := <-r.agent.program.Lines:
			if more {
				err = r.receive(m)
			} else {
				err = r.exited()
			}
		case newer := <-w.Newer():
			err = r.steer(newer)
		case decide := <-w.Decided:
			err = decide()
		case <-w.timeout:
			err = r.overdue()
		case <-interrupted:
			if !errors.Is(context.Cause(ctx), agentproto.ErrInterrupted) {
				return w.reply, context.Cause(ctx)
			}
			interrupted = nil
			err = r.interrupt()
		}
		if err != nil {
			return r.failed(err)
		}
	}
	if w.err != nil {
		return r.failed(w.err)
	}
	return w.reply, nil
}

// failed is the reply of a turn that has failed. It names the session if the agent has stored it, unless that is the
// failure.
func (r *run) failed(err error) (agentproto.Reply, error) {
	var f *agentproto.Failure
	if !errors.As(err, &f) {
		return agentproto.Reply{}, err
	}
	redacted := *f
	redacted.Text = r.cfg.redact(f.Text)
	reply := r.running.reply
	if f.Kind != agentproto.KindSession && r.kept {
		reply.Session = r.name()
	}
	return reply, &redacted
}

// name is the session as gated knows it, "" for one that cannot be resumed.
func (r *run) name() string {
	canResume := has(r.can.Agent.Session.Resume) || r.can.Agent.LoadSession
	if !canResume || len(r.session) > agentproto.MaxSessionID {
		return ""
	}
	return r.session
}

// prompt sends the turn to the agent. From here on it may have been delivered, and is not sent again.
func (r *run) prompt() error {
	w := r.running
	blocks := r.blocks(w.Prompt)
	if r.fresh && w.Start.System != "" && !r.takesSystem() {
		blocks = slices.Insert(blocks, 0, textBlock(agentproto.Inert(w.Start.System)))
	}
	r.fresh, w.prompted = false, true
	w.shown.costBefore = r.cost.now
	return r.agent.call(methodPrompt, map[string]any{"sessionId": r.session, "prompt": blocks}, func(m message) error {
		w.response, w.lateEnd = &m, time.Now().Add(maxLate)
		return r.finish()
	})
}

// steer gives the agent a turn that it may take into the running one. One that it does not take in waits.
func (r *run) steer(newer *agentproto.Turn) error {
	w := r.running
	if !r.can.Meta.Steering.Supported || w.dropped || w.response != nil {
		return nil
	}
	w.steers[newer.ID] = true
	params := map[string]any{
		"sessionId": r.session, "prompt": r.blocks(newer.Prompt),
		"_meta": map[string]any{"steering": map[string]string{"idleBehavior": "promptRequired"}},
	}
	return r.agent.call(methodSteer, params, func(m message) error {
		if r.running != w {
			return nil // too late
		}
		delete(w.steers, newer.ID)
		var result struct {
			Outcome string `json:"outcome"`
		}
		if m.Error == nil && json.Unmarshal(m.Result, &result) == nil && result.Outcome == "injected" {
			if err := w.Fold(newer); err != nil {
				return err
			}
		}
		return r.finish()
	})
}

// interrupt makes the agent drop the running turn. Its questions to users are cancelled.
func (r *run) interrupt() error {
	w := r.running
	w.dropped = true
	if err := r.cancelQuestions(); err != nil {
		return err
	}
	if w.response != nil {
		return r.finish()
	}
	w.timeout = time.After(cancelTimeout)
	return r.agent.notify(methodCancel, map[string]any{"sessionId": r.session})
}

// overdue handles an agent that has not ended a turn in time after it was stopped, or has nothing more to say of one
// that it has answered. If it has not said whether it has taken messages in, these fail.
func (r *run) overdue() error {
	if !r.running.dropped {
		return r.settle()
	}
	r.log("%s has not ended the turn in %s: it is terminated", r.cfg.name(), cancelTimeout)
	r.abandon()
	r.running.ended = true
	return nil
}

// settle ends a turn that the agent has answered.
func (r *run) settle() error {
	w := r.running
	w.settled = true
	maps.Copy(r.unclear, w.steers)
	clear(w.steers)
	return r.finish()
}

// awaitMore waits until the agent says nothing more of a turn that it has answered.
func (w *runningTurn) awaitMore() {
	w.timeout = time.After(min(lateDelay, time.Until(w.lateEnd)))
}

// finish ends the running turn once the agent has answered it, has said which messages it has taken in, and nothing
// more.
func (r *run) finish() error {
	w := r.running
	switch {
	case w == nil || w.response == nil:
		return nil
	case len(w.steers) > 0 && !w.dropped:
		w.timeout = time.After(steerTimeout)
		return nil
	case !w.settled && !w.dropped:
		w.awaitMore()
		return nil
	}
	w.ended = true
	if err := r.cancelQuestions(); err != nil {
		return err
	}
	if w.dropped {
		r.kept, r.late = true, true
		return nil
	}
	if e := w.response.Error; e != nil {
		return r.promptError(e)
	}
	var result promptResult
	_ = json.Unmarshal(w.response.Result, &result)
	r.kept = true
	if err := r.showResult(result); err != nil {
		return err
	}
	return r.conclude(result.StopReason)
}

// promptError is the failure of a turn that the agent answered with an error.
func (r *run) promptError(e *rpcError) error {
	switch {
	case r.needsAuthentication(e):
		return r.authFailure(e)
	case e.Code == codeNotFound && len(r.running.said.texts) == 0 &&
		len(r.running.shown.calls) == 0: // else the prompt was worked on
		return new(failure.SessionLost(e.text()))
	}
	return r.errorFailure(e)
}

// conclude makes the reply. An answer without any text is not a silence: a model that wants to be silent says so, by
// hidden text.
func (r *run) conclude(stop string) error {
	w := r.running
	text := w.said.whole()
	w.err = r.stopFailure(stop)
	switch note := notes[stop]; {
	case w.denied && (stop == stopCancelled || text == "" && w.err == nil): // some agents end the turn then
		text, w.err = strings.TrimSpace(text+"\n\n(I have stopped here, since I may not do this.)"), nil
	case text == "" && w.err == nil:
		w.err = new(failure.Transient("%s ended the turn without an answer (%s)", r.cfg.name(),
			cmp.Or(stop, "no reason")))
		return nil
	case text != "" && note != "":
		text = strings.TrimSpace(agentproto.Strip(text)) + "\n\n" + note
	}
	if stop == stopCancelled && w.err != nil {
		text = ""
	}
	w.reply = agentproto.Reply{Text: r.cfg.redact(text), Session: r.name()}
	return nil
}

// receive handles a message of the agent. Unknown ones do no harm.
func (r *run) receive(m message) error {
	switch {
	case m.Method == "":
		known, err := r.agent.returned(m)
		if !known {
			r.log("a response to no request: %.40s", m.ID)
		}
		return err
	case m.Method == methodUpdate && m.ID == nil:
		return r.update(m.Params)
	case m.Method == methodCancelRequest && m.ID == nil:
		r.withdraw(m.Params)
		return nil
	case m.ID == nil:
		return nil
	case strings.EqualFold(m.Method, methodInitialize):
		return r.notACP("sends back what it gets, as cat does")
	case r.isRepeated(m):
		return r.repeated(m)
	case m.Method == methodPermission:
		return r.askPermission(m)
	case m.Method == methodElicit:
		return r.elicit(m)
	}
	r.log("%s: refused", agentproto.Truncate(m.Method, maxNoise))
	return r.agent.refuse(m, rpcError{Code: codeMethodNotFound,
		Message: "Method not found: this client has no files and no terminals"})
}

// exited handles the end of the agent while it has a turn, which is not repeated here: it may have been done in part.
func (r *run) exited() error {
	a, w := r.agent, r.running
	r.abandon()
	clear(w.open)
	switch {
	case w.dropped:
		w.ended = true
		return nil
	case w.response != nil:
		return r.settle()
	}
	return new(failure.Transient("%s exited during a turn: %s", r.cfg.name(), failure.Excerpt(a.program.Ending())))
}

// idle handles the agent's messages between turns. If it exits, the next turn starts it again, with the same session.
func (r *run) idle(ctx context.Context) error {
	for r.agent != nil {
		select {
		case m, more := <-r.agent.program.Lines:
			if !more {
				a := r.agent
				r.abandon()
				r.log("unexpected exit of %s between turns: %s", r.cfg.name(), a.program.Ending())
				return nil
			}
			if err := r.receive(m); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// abandon ends the agent. The next turn starts another one.
func (r *run) abandon() {
	r.close()
	r.agent, r.ready = nil, false
}

// close ends the agent's input and, if it stays, the agent with all that it has started.
func (r *run) close() {
	if r.agent != nil {
		r.agent.program.Close()
	}
}

func (r *run) log(format string, args ...any) {
	fmt.Fprintln(r.stderr, r.cfg.redact(fmt.Sprintf(format, args...)))
}

// blocks are the prompt, and after it the images of its messages, if the agent takes images.
func (r *run) blocks(prompt string) []contentBlock {
	blocks := []contentBlock{textBlock(prompt)}
	if !r.can.Agent.Prompt.Image {
		return blocks
	}
	for _, p := range pictures.Of(prompt, r.cfg.folder, r.log) {
		blocks = append(blocks, textBlock(p.Label), contentBlock{Type: "image", Data: p.Data, MIME: p.MIME})
	}
	return blocks
}
