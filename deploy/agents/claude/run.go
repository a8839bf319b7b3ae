package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"

	"arizuko/deploy/agents/internal/failure"
	"arizuko/deploy/agents/internal/permission"
	"arizuko/deploy/agents/internal/turn"
	"arizuko/pkg/agentproto"
)

// maxAuthRetries is how often the CLI may retry a call that the API refuses for its credentials. The
// API does that by mistake at times, but the CLI would retry for ten seconds.
const maxAuthRetries = 1

// run is one run of the agent. The CLI gets one turn at a time, and those that may be folded into it.
type run struct {
	ctx     context.Context //nolint:containedctx // of the program: its end terminates the CLI
	cfg     Config
	stderr  io.Writer
	cli     *cli         // nil before the first turn and after its end
	begun   bool         // a turn has begun
	session conversation // that the CLI has stored, if any
	message string       // the model's last one that the CLI has printed, "" before
	loading bool         // the CLI was started to resume a session and has not begun a turn
	lost    string       // why the session cannot be resumed, if an interrupted turn has shown that
	running *runningTurn // nil between turns
	// given are turns that came while the CLI worked on another one, by the uuids of their messages. The CLI takes them
	// in at its next call of the model, or begins them afterwards.
	given map[string]*agentproto.Turn
	last  *agentproto.Turn // the turn answered last
	plan  plan
	// offered is the model in use that users were shown last, "" before.
	offered string
}

// runningTurn is a turn that the CLI has got.
type runningTurn struct {
	*turn.Turn
	uuid  string // of its message
	begun bool   // the CLI is working on it

	dropped bool          // by an interrupt; its answer is not wanted
	said    said          // by the model so far
	shown   shown         // of the work, in events
	failure string        // the CLI's name for the last failure
	delay   time.Duration // the CLI's last one before a retry; at least the API's
	resetAt time.Time     // of a usage limit that is reached; zero if none is
	ended   bool          // with the following
	reply   agentproto.Reply
	err     error
}

func newRun(ctx context.Context, cfg Config, stderr io.Writer) *run {
	return &run{ctx: ctx, cfg: cfg, stderr: stderr, given: map[string]*agentproto.Turn{}}
}

// answer answers a turn. An interrupted one ends when the CLI has ended it: the CLI would
// take the next message for a part of it.
func (r *run) answer(ctx context.Context, t *agentproto.Turn) (agentproto.Reply, error) {
	if !r.begun {
		r.begun = true
		if !r.begin(t.Session) {
			r.lost = "it is not one of Claude Code"
		}
		if t.Start.MCP != nil {
			r.cfg.hide(t.Start.MCP.Token)
		}
	}
	inner, end := turn.New(ctx, t)
	defer end()
	w := &runningTurn{Turn: inner, uuid: newUUID()}
	r.running = w
	defer func() { r.running = nil }()
	if err := r.launch(); err != nil {
		return w.reply, err
	}
	interrupted := ctx.Done()
	for !w.ended {
		var err error
		select {
		case l, open := <-r.cli.program.Lines:
			err = r.next(l, open)
		case newer := <-w.Newer():
			err = r.give(newer)
		case decide := <-w.Decided:
			err = decide()
		case <-interrupted:
			if !errors.Is(context.Cause(ctx), agentproto.ErrInterrupted) {
				return w.reply, context.Cause(ctx)
			}
			interrupted, w.dropped = nil, true
			err = r.interrupt()
		}
		if err != nil {
			return w.reply, err
		}
	}
	return w.reply, w.err
}

// give gives the CLI a turn that it may take in while it works on another one, unless it has it.
func (r *run) give(t *agentproto.Turn) error {
	if r.running.dropped || r.givenAs(t) != "" {
		return nil
	}
	uuid := newUUID()
	r.given[uuid] = t
	return r.cli.program.Send(r.userLine(uuid, t.Prompt))
}

// givenAs is the uuid of the message of a turn that the CLI has before its time, "" if it has not.
func (r *run) givenAs(t *agentproto.Turn) string {
	for uuid, g := range r.given {
		if g == t {
			return uuid
		}
	}
	return ""
}

// takenIn makes the turns of messages that the CLI works on parts of the running turn.
func (r *run) takenIn(uuids ...string) error {
	for _, uuid := range uuids {
		newer, ok := r.given[uuid]
		if !ok || r.running == nil || uuid == r.running.uuid {
			continue
		}
		delete(r.given, uuid)
		if err := r.running.Fold(newer); err != nil {
			return err
		}
	}
	return nil
}

// interrupt makes the CLI drop the running turn, and those that it has before their time.
func (r *run) interrupt() error {
	for uuid := range r.given {
		if err := r.cli.program.Send(newCancel(uuid)); err != nil {
			return err
		}
	}
	clear(r.given)
	return r.cli.program.Send(newInterrupt("drop-" + r.running.uuid))
}

// idle handles the CLI's lines between turns.
func (r *run) idle(ctx context.Context) error {
	for r.cli != nil {
		var err error
		select {
		case l, open := <-r.cli.program.Lines:
			err = r.next(l, open)
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end ends the input of the CLI, and handles its lines until it exits.
func (r *run) end() error {
	if r.cli == nil {
		return nil
	}
	r.cli.program.Finish()
	for l := range r.cli.program.Lines {
		if err := r.handleLine(l); err != nil {
			return err
		}
	}
	return nil
}

// close ends the CLI and ignores its further lines.
func (r *run) close() {
	if r.cli != nil {
		r.cli.program.Close()
	}
}

// launch starts the CLI, unless it runs, with the session to resume, and sends it the running turn, unless it has it.
func (r *run) launch() error {
	switch {
	case r.lost != "":
		return r.fail(failure.SessionLost(r.lost))
	case r.cli == nil:
		err := os.MkdirAll(r.cfg.ConfigDir, 0o700) // Claude Code would make it readable for other users
		if err != nil {
			return r.fail(failure.OfStart(err, fmt.Sprintf("cannot create the folder of Claude Code: %v", err)))
		}
		resume, err := r.resume()
		if err != nil {
			return err
		}
		c, err := startCLI(r.ctx, &r.cfg, resume, r.running.Start, r.stderr)
		if err != nil {
			return r.fail(failure.OfStart(err,
				fmt.Sprintf("Claude Code cannot be started: %v; set CLAUDE_COMMAND to its program", err)))
		}
		r.cli, r.loading = c, len(resume) > 0
		if err := c.program.Send(newInitialize()); err != nil {
			return err
		}
	}
	if uuid := r.givenAs(r.running.Turn.Turn); uuid != "" {
		r.running.uuid = uuid
		delete(r.given, uuid)
		return nil
	}
	return r.cli.program.Send(r.userLine(r.running.uuid, r.running.Prompt))
}

// next handles a line of the CLI, or its end.
func (r *run) next(l line, open bool) error {
	if open {
		return r.handleLine(l)
	}
	return r.exited()
}

// handleLine handles a line of the CLI. Unknown types are ignored.
func (r *run) handleLine(l line) error {
	if l.Type == "assistant" && l.ParentToolUse == "" && isUUID(l.UUID) {
		r.message = l.UUID
	}
	if l.Type == "assistant" && r.running != nil {
		r.running.failure = cmp.Or(l.Error, r.running.failure)
		r.running.said.add(l)
	}
	if err := r.show(l); err != nil {
		return err
	}
	switch l.Type {
	case "system":
		return r.system(l)
	case "rate_limit_event":
		if l.RateLimit.Status == "rejected" && l.RateLimit.ResetsAt > 0 && r.running != nil {
			r.running.resetAt = time.Unix(l.RateLimit.ResetsAt, 0)
		}
	case "command_lifecycle":
		if l.State == "started" {
			return r.takenIn(l.CommandUUID)
		}
	case "control_request":
		if l.Request.Subtype == hookCallback && l.Request.CallbackID == skillHook {
			return r.cli.program.Send(inertSkill(l))
		}
		if l.Request.Subtype == mayUseTool && r.cfg.Permissions == permission.SettingAsk {
			return r.askPermission(l)
		}
		r.log("%s %s: denied", l.Request.Subtype, l.Request.ToolName)
		return r.cli.program.Send(answer(l, denial(l)))
	case "result":
		return r.result(l)
	}
	return nil
}

// system logs system lines that help to understand a run.
func (r *run) system(l line) error {
	switch l.Subtype {
	case "init":
		r.loading, r.cli.begun, r.cli.model = false, true, l.Model
		if r.running != nil {
			r.running.begun = true
		}
		r.log("Claude Code %s, model %s, session %s", l.Version, l.Model, l.SessionID)
		for _, server := range l.MCPServers {
			if server.Status != "connected" {
				r.log("tools of %s: %s", server.Name, server.Status)
			}
		}
		return r.offer(l.Model)
	case "api_retry":
		r.log("the model's API answered %d; retry %d", l.ErrorStatus, l.Attempt)
		return r.retrying(l)
	}
	return nil
}

// offer says which models users may choose, once for each model in use.
func (r *run) offer(model string) error {
	current := cmp.Or(r.cfg.chosen(), model)
	if r.running == nil || r.offered == current {
		return nil
	}
	r.offered = current
	return r.running.Offer(r.cfg.offered(current))
}

// retrying handles a failed call of the model's API that the CLI is about to retry.
func (r *run) retrying(l line) error {
	if r.running == nil || r.running.dropped {
		return nil
	}
	if err := r.showRetry(l.ErrorStatus, agentproto.ToolRunning); err != nil || l.ErrorStatus == 0 {
		return err
	}
	if l.ErrorStatus == http.StatusUnauthorized && l.Attempt > maxAuthRetries {
		r.cli.program.Terminate()
		return r.fail(resultFailure(line{APIStatus: l.ErrorStatus}, ""))
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
		return r.loseSession(why)
	}
	if isUUID(l.SessionID) && l.SessionID != r.session.id {
		r.session = conversation{id: l.SessionID} // stored at the end of the CLI, unless it is killed
	}
	if r.running == nil || !l.answers(r.running.uuid) {
		return r.unprompted(l)
	}
	if err := r.takenIn(l.UserMessages...); err != nil {
		return err
	}
	w := r.running
	w.ended, r.loading = true, false
	switch {
	case w.dropped:
		return nil
	case l.invalid != nil:
		return r.fail(failure.Transient("invalid answer of Claude Code: %v", l.invalid))
	case l.failed():
		f := resultFailure(l, w.failure)
		f.RetryAfter = w.retryAfter(l)
		return r.fail(f)
	}
	// One frame at the end, so that a turn that fails in a tool call is retried with nothing of it sent.
	w.reply, r.last = r.reply(l, w.said), w.Turn.Turn
	return nil
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

// loseSession reports that the session cannot be resumed. Without a turn it does not matter yet.
func (r *run) loseSession(why string) error {
	if r.running != nil && !r.running.dropped {
		return r.fail(failure.SessionLost(why))
	}
	r.lost = why
	if r.running != nil {
		r.running.ended = true
	}
	return nil
}

// reply is the answer of a result, with the texts before it.
func (r *run) reply(l line, said said) agentproto.Reply {
	r.answered()
	return agentproto.Reply{Text: r.cfg.redact(said.answer(l.Result)), Session: r.session.name()}
}

// unprompted handles a result without a message, as of a finished task: another frame of the last turn.
func (r *run) unprompted(l line) error {
	if r.last == nil || l.Result == "" || len(l.UserMessages) > 0 || l.failed() {
		r.log("ignored an unexpected result: %s", l.Subtype)
		return nil
	}
	return r.last.Send(r.reply(l, nil))
}

// exited handles the end of the CLI. Between turns it does no harm: the next turn starts another, with
// the same session.
func (r *run) exited() error {
	c, w := r.cli, r.running
	expected := c.program.Finished()
	c.program.Close()
	r.cli = nil
	clear(r.given) // they are given to the next one in their turn
	switch {
	case w != nil && w.dropped:
		w.ended = true
	case w != nil && (w.begun || !c.begun):
		return r.fail(exitFailure(c.program.Exit(), c.program.Ending(), r.loading))
	}
	if !expected {
		r.log("unexpected exit of Claude Code between turns: %s", c.program.Ending())
	}
	if w != nil && !w.ended { // it had ended before it got the turn
		return r.launch()
	}
	return nil
}

// fail is the failure of the running turn. It names the session, which is kept unless it is the failure.
func (r *run) fail(f agentproto.Failure) error {
	f.Text = r.cfg.redact(f.Text)
	if f.Kind != agentproto.KindSession {
		r.running.reply.Session = r.session.name()
	}
	return &f
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
