package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"arizuko/pkg/agentproto"
)

// lostNote precedes the first answer if the session could not be resumed. It is not a frame of its
// own: a turn has one answer.
const lostNote = "(I have lost our earlier conversation and start afresh.)"

// errStopped is returned for a run that was terminated by a signal.
var errStopped = errors.New("terminated")

// run is one run of the agent. The CLI gets one turn at a time.
type run struct {
	cfg         Config
	out, stderr io.Writer
	start       agentproto.Start
	cli         *cli // nil before the first turn and after its end
	resumes     bool // the CLI was started to resume a session
	lost        bool // the session does not exist
	note        string
	waiting     []turn       // oldest first
	running     *runningTurn // nil between turns
	last        string       // the id of the turn answered last
	failure     string       // the CLI's name for the last failure
	ending      bool         // there is no more input
}

type turn struct{ id, prompt string }

// runningTurn is a turn that the CLI has got.
type runningTurn struct {
	turn
	uuid    string // of its message
	dropped bool   // by an interrupt; its answer is not wanted
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
			err = errStopped
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

func (r *run) receive(ctx context.Context, in agentproto.Input) error {
	switch in := in.(type) {
	case agentproto.Start:
		r.start = in
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

// launch starts the CLI, with the session that the run resumes.
func (r *run) launch(ctx context.Context) error {
	session := r.start.SessionID
	if session != "" && !isUUID(session) { // of another agent
		r.note, session = lostNote, ""
	}
	err := os.MkdirAll(r.cfg.ConfigDir, 0o700) // Claude Code would make it readable for other users
	if err != nil {
		return r.fail(r.waiting[0].id, fmt.Sprintf("cannot create the folder of Claude Code: %v", err))
	}
	c, err := startCLI(ctx, &r.cfg, session, r.start.MCP, r.stderr)
	if err != nil {
		return r.fail(r.waiting[0].id, fmt.Sprintf("Claude Code cannot be started: %v; set CLAUDE_COMMAND to its program", err))
	}
	r.cli, r.resumes = c, session != ""
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
		r.logSystem(l)
	case "assistant":
		if l.Error != "" {
			r.failure = l.Error
		}
	case "control_request":
		r.log("%s %s: denied", l.Request.Subtype, l.Request.ToolName)
		return r.cli.send(answer(l))
	case "result":
		return r.result(l)
	}
	return nil
}

// logSystem logs system lines that help to understand a run.
func (r *run) logSystem(l line) {
	switch l.Subtype {
	case "init":
		r.log("Claude Code %s, model %s, session %s", l.Version, l.Model, l.SessionID)
		for _, server := range l.MCPServers {
			if server.Status != "connected" {
				r.log("tools of %s: %s", server.Name, server.Status)
			}
		}
	case "api_retry":
		r.log("the model's API answered %d; retry %d", l.ErrorStatus, l.Attempt)
	}
}

func (r *run) log(format string, args ...any) {
	fmt.Fprintln(r.stderr, r.cfg.redact(fmt.Sprintf(format, args...)))
}

// result handles the end of a turn of the CLI.
func (r *run) result(l line) error {
	switch {
	case r.resumes && l.failed() && strings.Contains(strings.Join(l.Errors, "\n"), "No conversation found"):
		r.lost = true // it exits by itself
		return nil
	case r.running == nil || !l.answers(r.running.uuid):
		return r.unprompted(l)
	}
	w := r.running
	r.running, r.resumes = nil, false
	switch {
	case w.dropped:
		return nil
	case l.invalid != nil:
		return r.fail(w.id, fmt.Sprintf("invalid answer of Claude Code: %v", l.invalid))
	case l.failed():
		return r.fail(w.id, explain(l, r.failure))
	}
	return r.reply(w.id, l)
}

func (r *run) reply(turnID string, l line) error {
	r.last = turnID
	text := l.Result
	if r.note != "" && text != "" {
		text, r.note = r.note+"\n\n"+text, ""
	}
	return agentproto.WriteFrame(r.out, agentproto.Frame{
		Status: agentproto.StatusOK, TurnID: turnID, NewSessionID: l.SessionID, Result: cut(r.cfg.redact(text)),
	})
}

// unprompted handles a result without a message, as of a finished task: another frame of the last turn.
func (r *run) unprompted(l line) error {
	if r.last == "" || l.Result == "" || len(l.UserMessages) > 0 || l.failed() {
		r.log("ignored an unexpected result: %s", l.Subtype)
		return nil
	}
	return r.reply(r.last, l)
}

// exited handles the end of the CLI.
func (r *run) exited(ctx context.Context) error {
	c := r.cli
	c.close()
	r.cli = nil
	switch {
	case r.lost:
		return r.restart(ctx)
	case c.ended && r.running == nil:
		return nil
	case r.running == nil || r.running.dropped:
		return fmt.Errorf("unexpected exit of Claude Code between turns: %s", c.ending())
	}
	return r.fail(r.running.id, explainExit(c.ending()))
}

// restart starts a new session with the turn that should have continued the old one.
func (r *run) restart(ctx context.Context) error {
	r.lost, r.note, r.start.SessionID = false, lostNote, ""
	if w := r.running; w != nil && !w.dropped {
		r.waiting = slices.Insert(r.waiting, 0, w.turn)
	}
	r.running = nil
	if len(r.waiting) == 0 {
		return nil
	}
	return r.launch(ctx)
}

// fail reports a failed turn and ends the run.
func (r *run) fail(turnID, problem string) error {
	problem = r.cfg.redact(problem)
	frame := agentproto.Frame{Status: agentproto.StatusError, TurnID: turnID, Error: cut(problem)}
	return errors.Join(errors.New(problem), agentproto.WriteFrame(r.out, frame))
}

// maxResult is the longest answer that always fits into a frame: escaping takes up to six bytes for
// one.
const maxResult = agentproto.MaxFrame / 8

// cut shortens a text to maxResult bytes, with a note.
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

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuidForm.MatchString(s) }

// newUUID makes a random one, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
