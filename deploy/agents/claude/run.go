package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"arizuko/pkg/agentproto"
)

// maxAuthRetries is how often the CLI may retry a call that the API refuses for its credentials. The
// API does that by mistake at times, but the CLI would retry for ten seconds.
const maxAuthRetries = 1

// errStopped is returned for a run that was terminated by a signal.
var errStopped = errors.New("terminated")

// run is one run of the agent. The CLI gets one turn at a time.
type run struct {
	cfg         Config
	out, stderr io.Writer
	start       agentproto.Start
	cli         *cli         // nil before the first turn and after its end
	session     string       // that the CLI has stored, "" if there is none yet
	loading     bool         // the CLI was started to resume a session and has not begun a turn
	waiting     []turn       // oldest first
	running     *runningTurn // nil between turns
	last        string       // the id of the turn answered last
	ending      bool         // there is no more input
}

type turn struct{ id, prompt string }

// runningTurn is a turn that the CLI has got.
type runningTurn struct {
	turn
	uuid    string        // of its message
	begun   bool          // the CLI is working on it
	dropped bool          // by an interrupt; its answer is not wanted
	said    said          // by the model so far
	failure string        // the CLI's name for the last failure
	delay   time.Duration // the CLI's last one before a retry; at least what the API asked for
	resetAt time.Time     // of a usage limit that is reached; zero if none is
}

func newRun(cfg Config, out, stderr io.Writer) *run { return &run{cfg: cfg, out: out, stderr: stderr} }

// serve answers turns until inputs is closed and all are answered, or until a turn fails: the rest is
// left to another run.
func (r *run) serve(ctx context.Context, inputs <-chan agentproto.Input) (err error) {
	defer func() {
		if r.cli != nil {
			r.cli.close()
		}
	}()
	for inputs != nil || r.cli != nil {
		var lines <-chan line
		if r.cli != nil {
			lines = r.cli.lines
		}
		select {
		case in, open := <-inputs:
			if open {
				err = r.receive(ctx, in)
			} else {
				inputs, r.ending = nil, true
			}
		case l, open := <-lines:
			if open {
				err = r.handleLine(l)
			} else {
				err = r.exited(ctx)
			}
		case <-ctx.Done():
			err = r.terminated()
		}
		if err == nil {
			err = r.next()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// terminated reports the running turn as failed: unless gated ended the run, and ignores the frame, the
// machine or an operator did, which says nothing against the session.
func (r *run) terminated() error {
	if r.running == nil || r.running.dropped {
		return errStopped
	}
	return errors.Join(errStopped, r.fail(r.running.id, transient("the agent was terminated during a turn")))
}

func (r *run) receive(ctx context.Context, in agentproto.Input) error {
	switch in := in.(type) {
	case agentproto.Start:
		r.start, r.session = in, in.SessionID
		if in.MCP != nil {
			r.cfg.hide(in.MCP.Token)
		}
		r.waiting = append(r.waiting, turn{in.TurnID, in.Prompt})
	case agentproto.Message:
		r.waiting = append(r.waiting, turn{in.TurnID, in.Prompt})
	case agentproto.Interrupt:
		return r.drop()
	}
	if r.cli == nil {
		return r.launch(ctx)
	}
	return nil
}

// drop drops all turns that are not answered.
func (r *run) drop() error {
	r.waiting = nil
	if r.running == nil || r.running.dropped {
		return nil
	}
	r.running.dropped = true
	return r.cli.send(newInterrupt("drop-" + r.running.uuid))
}

// launch starts the CLI for the turns that wait, with the session to resume.
func (r *run) launch(ctx context.Context) error {
	oldest := r.waiting[0].id
	if r.session != "" && !isUUID(r.session) { // of another agent
		return r.fail(oldest, sessionLost("it is not one of Claude Code"))
	}
	err := os.MkdirAll(r.cfg.ConfigDir, 0o700) // Claude Code would make it readable for other users
	if err != nil {
		return r.fail(oldest, startFailure(err, fmt.Sprintf("cannot create the folder of Claude Code: %v", err)))
	}
	c, err := startCLI(ctx, &r.cfg, r.session, r.start, r.stderr)
	if err != nil {
		return r.fail(oldest, startFailure(err, fmt.Sprintf("Claude Code cannot be started: %v; set CLAUDE_COMMAND to its program", err)))
	}
	r.cli, r.loading = c, r.session != ""
	return nil
}

// next sends the CLI its next turn or, if there will be none, ends its input.
func (r *run) next() error {
	switch {
	case r.cli == nil || r.running != nil:
		return nil
	case len(r.waiting) > 0:
		r.running = &runningTurn{turn: r.waiting[0], uuid: newUUID()}
		r.waiting = r.waiting[1:]
		return r.cli.send(newUserLine(r.running.uuid, r.running.prompt))
	case r.ending:
		r.cli.finish()
	}
	return nil
}

// handleLine handles a line of the CLI. Unknown types are ignored.
func (r *run) handleLine(l line) error {
	switch l.Type {
	case "system":
		return r.system(l)
	case "assistant":
		if r.running != nil {
			r.running.failure = cmp.Or(l.Error, r.running.failure)
			r.running.said.add(l)
		}
	case "rate_limit_event":
		if l.RateLimit.Status == "rejected" && l.RateLimit.ResetsAt > 0 && r.running != nil {
			r.running.resetAt = time.Unix(l.RateLimit.ResetsAt, 0)
		}
	case "control_request":
		r.log("%s %s: denied", l.Request.Subtype, l.Request.ToolName)
		return r.cli.send(answer(l))
	case "result":
		return r.result(l)
	}
	return nil
}

// system logs system lines that help to understand a run.
func (r *run) system(l line) error {
	switch l.Subtype {
	case "init":
		r.loading, r.cli.begun = false, true
		if r.running != nil {
			r.running.begun = true
		}
		r.log("Claude Code %s, model %s, session %s", l.Version, l.Model, l.SessionID)
		for _, server := range l.MCPServers {
			if server.Status != "connected" {
				r.log("tools of %s: %s", server.Name, server.Status)
			}
		}
	case "api_retry":
		r.log("the model's API answered %d; retry %d", l.ErrorStatus, l.Attempt)
		return r.retrying(l)
	}
	return nil
}

// retrying handles a failed call of the model's API that the CLI is about to retry.
func (r *run) retrying(l line) error {
	if r.running == nil || r.running.dropped || l.ErrorStatus == 0 {
		return nil
	}
	if l.ErrorStatus == http.StatusUnauthorized && l.Attempt > maxAuthRetries {
		r.cli.cancel()
		return r.fail(r.running.id, resultFailure(line{APIStatus: l.ErrorStatus}, ""))
	}
	r.running.delay = time.Duration(l.RetryDelayMS * float64(time.Millisecond))
	return nil
}

func (r *run) log(format string, args ...any) {
	fmt.Fprintln(r.stderr, r.cfg.redact(fmt.Sprintf(format, args...)))
}

// result handles the end of a turn of the CLI.
func (r *run) result(l line) error {
	if why := l.resumeFailure(); why != "" && r.loading {
		return r.lost(why)
	}
	if isUUID(l.SessionID) {
		r.session = l.SessionID // stored at the end of the CLI, unless it is killed
	}
	if r.running == nil || !l.answers(r.running.uuid) {
		return r.unprompted(l)
	}
	w := r.running
	r.running, r.loading = nil, false
	switch {
	case w.dropped:
		return nil
	case l.invalid != nil:
		return r.fail(w.id, transient("invalid answer of Claude Code: %v", l.invalid))
	case l.failed():
		f := resultFailure(l, w.failure)
		f.retryAfter = w.retryAfter(l)
		return r.fail(w.id, f)
	}
	return r.reply(w.id, l, w.said)
}

// retryAfter is how long to wait with the next attempt, 0 if the API did not answer.
func (w *runningTurn) retryAfter(l line) time.Duration {
	switch {
	case l.APIStatus == 0:
		return 0
	case !w.resetAt.IsZero():
		return max(time.Until(w.resetAt), 0)
	}
	return w.delay
}

// lost reports that the session cannot be resumed. Without a turn it does not matter yet.
func (r *run) lost(why string) error {
	w := r.running
	r.running = nil
	switch {
	case w != nil && !w.dropped:
		return r.fail(w.id, sessionLost(why))
	case len(r.waiting) > 0:
		return r.fail(r.waiting[0].id, sessionLost(why))
	}
	return nil
}

// reply writes the answer of a turn: one frame at its end, so that a turn that fails in a tool call is
// retried with nothing of it sent.
func (r *run) reply(turnID string, l line, said said) error {
	r.last = turnID
	text := r.cfg.redact(said.answer(l.Result))
	return agentproto.WriteFrame(r.out, agentproto.Frame{
		Status: agentproto.StatusOK, TurnID: turnID, NewSessionID: l.SessionID, Result: agentproto.Cut(text, agentproto.MaxResult),
	})
}

// unprompted handles a result without a message, as of a finished task: another frame of the last turn.
func (r *run) unprompted(l line) error {
	if r.last == "" || l.Result == "" || len(l.UserMessages) > 0 || l.failed() {
		r.log("ignored an unexpected result: %s", l.Subtype)
		return nil
	}
	return r.reply(r.last, l, nil)
}

// exited handles the end of the CLI. Between turns it does no harm: the next turn starts another, with
// the same session.
func (r *run) exited(ctx context.Context) error {
	c, w, expected := r.cli, r.running, r.cli.ended
	c.close()
	r.cli, r.running = nil, nil
	switch {
	case w != nil && !w.dropped && (w.begun || !c.begun):
		return r.fail(w.id, exitFailure(c.exit, c.ending(), r.loading))
	case w != nil && !w.dropped: // it had ended before it got the turn
		r.waiting = slices.Insert(r.waiting, 0, w.turn)
	}
	if !expected {
		r.log("unexpected exit of Claude Code between turns: %s", c.ending())
	}
	if len(r.waiting) > 0 {
		return r.launch(ctx)
	}
	return nil
}

// fail reports a failed turn and ends the run. It names the session, which is kept unless it is the
// failure.
func (r *run) fail(turnID string, f failure) error {
	text := r.cfg.redact(f.text)
	frame := agentproto.Frame{
		Status: agentproto.StatusError, TurnID: turnID, Error: agentproto.Truncate(text, agentproto.MaxError), Kind: f.kind,
	}
	if f.kind != agentproto.KindSession && isUUID(r.session) {
		frame.NewSessionID = r.session
	}
	if f.kind == agentproto.KindTransient {
		frame.RetryAfter = min(math.Ceil(f.retryAfter.Seconds()), agentproto.MaxRetryAfter.Seconds())
	}
	return errors.Join(errors.New(text), agentproto.WriteFrame(r.out, frame))
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuidForm.MatchString(s) }

// newUUID makes a random one, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
