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

// lostNote stands in front of the first answer when the conversation could not be resumed. It is
// no frame of its own: a turn has one answer.
const lostNote = "(I have lost our earlier conversation and start afresh.)"

// errStopped is the end of a run that was told to terminate.
var errStopped = errors.New("told to stop")

// run is the turns of one run, oldest first, and the CLI that works on them.
type run struct {
	cfg         Config
	out, stderr io.Writer
	start       agentproto.Start
	cli         *cli // nil before the first turn and after its end
	resumes     bool // the CLI was told to resume a session
	lost        bool // which it said it does not have
	note        string
	waiting     []turn
	work        *work  // what the CLI is at
	last        string // the turn answered last
	failure     string // the CLI's word for what failed last
	ending      bool   // no more input
}

type turn struct{ id, prompt string }

// work is a turn that was given to the CLI.
type work struct {
	turn
	uuid    string // of its message
	dropped bool   // nobody waits for its answer any more
}

func newRun(cfg Config, out, stderr io.Writer) *run { return &run{cfg: cfg, out: out, stderr: stderr} }

// serve works until inputs is closed and everything is answered, or until a turn fails: what
// follows it is then for another run.
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
				err = r.take(ctx, in)
			} else {
				inputs, r.ending = nil, true
			}
		case l, open := <-lines:
			if open {
				err = r.heard(l)
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

func (r *run) take(ctx context.Context, in agentproto.Input) error {
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

// drop leaves everything unanswered.
func (r *run) drop() error {
	r.waiting = nil
	if r.work == nil || r.work.dropped {
		return nil
	}
	r.work.dropped = true
	return r.cli.send(newInterrupt("drop-" + r.work.uuid))
}

// launch starts the CLI, in the session that the run is to resume.
func (r *run) launch(ctx context.Context) error {
	session := r.start.SessionID
	if session != "" && !isUUID(session) { // another agent's
		r.note, session = lostNote, ""
	}
	err := os.MkdirAll(r.cfg.ConfigDir, 0o700) // Claude Code would let others read in it
	if err != nil {
		return r.fail(r.waiting[0].id, fmt.Sprintf("Claude Code has no place for its conversations: %v", err))
	}
	c, err := startCLI(ctx, &r.cfg, session, r.start.MCP, r.stderr)
	if err != nil {
		return r.fail(r.waiting[0].id, fmt.Sprintf("Claude Code cannot be started: %v; CLAUDE_COMMAND has to name its program", err))
	}
	r.cli, r.resumes = c, session != ""
	return nil
}

// next gives the CLI its next turn, or, when there will be none, the end of its input.
func (r *run) next() error {
	switch {
	case r.cli == nil || r.work != nil:
		return nil
	case len(r.waiting) > 0:
		r.work = &work{turn: r.waiting[0], uuid: newUUID()}
		r.waiting = r.waiting[1:]
		return r.cli.send(newUserLine(r.work.uuid, r.work.prompt))
	case r.ending:
		r.cli.finish()
	}
	return nil
}

// heard deals with a line of the CLI's. Those of unknown types are ignored.
func (r *run) heard(l line) error {
	switch l.Type {
	case "system":
		r.noteSystem(l)
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

// noteSystem keeps in the log what helps to understand a run.
func (r *run) noteSystem(l line) {
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

// result is the end of a turn of the CLI's.
func (r *run) result(l line) error {
	switch {
	case r.resumes && l.failed() && strings.Contains(strings.Join(l.Errors, "\n"), "No conversation found"):
		r.lost = true // it exits by itself
		return nil
	case r.work == nil || !l.answers(r.work.uuid):
		return r.unasked(l)
	}
	w := r.work
	r.work, r.resumes = nil, false
	switch {
	case w.dropped:
		return nil
	case l.broken != nil:
		return r.fail(w.id, fmt.Sprintf("an answer of Claude Code's cannot be understood: %v", l.broken))
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

// unasked is what the CLI has to say by itself, of a task that ended: more to the last turn.
func (r *run) unasked(l line) error {
	if r.last == "" || l.Result == "" || len(l.UserMessages) > 0 || l.failed() {
		r.log("a result that nobody asked for; ignored: %s", l.Subtype)
		return nil
	}
	return r.reply(r.last, l)
}

// exited deals with the CLI's end.
func (r *run) exited(ctx context.Context) error {
	c := r.cli
	c.close()
	r.cli = nil
	switch {
	case r.lost:
		return r.restart(ctx)
	case c.ended && r.work == nil:
		return nil
	case r.work == nil || r.work.dropped:
		return fmt.Errorf("nothing to do, and Claude Code is gone: %s", c.gone())
	}
	return r.fail(r.work.id, explainExit(c.gone()))
}

// restart begins the conversation anew with the turn that was to continue it.
func (r *run) restart(ctx context.Context) error {
	r.lost, r.note, r.start.SessionID = false, lostNote, ""
	if w := r.work; w != nil && !w.dropped {
		r.waiting = slices.Insert(r.waiting, 0, w.turn)
	}
	r.work = nil
	if len(r.waiting) == 0 {
		return nil
	}
	return r.launch(ctx)
}

// fail reports a turn as failed and ends the run.
func (r *run) fail(turnID, problem string) error {
	problem = r.cfg.redact(problem)
	frame := agentproto.Frame{Status: agentproto.StatusError, TurnID: turnID, Error: cut(problem)}
	return errors.Join(errors.New(problem), agentproto.WriteFrame(r.out, frame))
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

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuidForm.MatchString(s) }

// newUUID makes a random one, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
