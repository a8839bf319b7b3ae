package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/queue"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// phase is how far an agent is on its way to the end. It goes on, and never back.
type phase int

const (
	phaseServing      phase = iota // it gets turns
	phaseDraining                  // it gets no more turns; those that it leaves lose no attempt
	phaseClosing                   // it gets nothing more at all
	phaseFailed                    // further output does not count
	phaseShuttingDown              // gated is stopping: nothing counts as a failure now
	phaseInterrupted               // its turn was cancelled: likewise
)

// reach goes on to a phase, unless that is over, and returns the phase before.
func (p *phase) reach(to phase) (before phase) {
	before = *p
	*p = max(before, to)
	return before
}

// agent is the process of a run, and its access to the tools. The run's goroutine owns it, except piped.
type agent struct {
	*runInfo
	groups   *groups
	queue    *queue.GroupQueue
	inbox    *mailbox // of its run
	access   Access
	egress   Egress
	proc     *runtime.Proc
	piped    atomic.Bool  // it has several unanswered turns
	holds    atomic.Value // the ids of its unanswered turns, as in rows.RunState
	deadline *time.Timer  // of its next frame
	phase    phase
	deaf     bool // it has closed its stdin
	failure  failure
}

// launch starts the process, and records it.
func (a *agent) launch() error {
	spec, err := a.spec()
	if err != nil {
		return err
	}
	proc, err := a.setup.runtime.Start(a.env.ctx, spec)
	if err != nil {
		return err
	}
	a.proc = proc
	failpoint.At(failpoint.Spawned)
	// The process has received nothing yet. From here on a restart can find it.
	err = a.env.persistIn(a.env.ctx, a.scope(), func(tx *store.Tx) error {
		return rows.RecordProcess(tx, a.row.ID, proc.PID(), proc.PIDStart(), proc.Label())
	})
	if err != nil { // gated is being killed
		go proc.Stop(0)
		for range proc.Events() {
		}
	}
	return err
}

// spec is how the runtime starts the process.
func (a *agent) spec() (s runtime.Spec, err error) {
	if a.setup.err != nil {
		return s, a.setup.err
	}
	dir, user, err := a.groups.dir(a.row.Folder)
	return runtime.Spec{
		RunID: a.row.ID, Dir: dir, Folder: a.row.Folder, User: user,
		Command: a.setup.Agent.Command, Image: a.setup.Agent.Image, Env: slices.Concat(a.setup.env, a.egress.Env),
		Network: runtime.Network(a.setup.Agent.Network), Proxy: a.egress.Proxy, Bundle: a.egress.Bundle,
		Limits: a.setup.Limits, Required: a.setup.required, OutputGrace: a.env.cfg.Graces.EOF,
		Data: a.env.cfg.Data, Redact: a.setup.redact,
		LogPath: filepath.Join(a.env.cfg.Logs, filepath.FromSlash(a.row.Folder), fmt.Sprintf("run-%d.log", a.row.ID)),
	}, err
}

// mcp is the agent's access to the tools, nil for none.
func (a *agent) mcp() *agentproto.MCP {
	token := a.access.Token()
	if token == "" {
		return nil
	}
	return &agentproto.MCP{URL: a.env.toolsURL(a.row.Runtime), Token: token}
}

// setTurns tells the tools on which turn the agent works now: the first of those that are unanswered.
func (a *agent) setTurns(unanswered []*msg.Turn) {
	var oldest int64
	if len(unanswered) > 0 {
		oldest = unanswered[0].ID
	}
	a.piped.Store(len(unanswered) > 1)
	ids := make([]int64, len(unanswered))
	for i, t := range unanswered {
		ids[i] = t.ID
	}
	slices.Sort(ids)
	a.holds.Store(strings.Trim(fmt.Sprint(ids), "[]"))
	a.access.SetTurn(oldest)
}

// awaitFrames waits until the answers that the agent has written so far are stored, so that a tool call is attributed
// to the turn after them. It returns the error of ctx. Any goroutine may call it.
func (a *agent) awaitFrames(ctx context.Context) error {
	if !a.piped.Load() {
		return nil // the agent has no other turn yet
	}
	if err := a.proc.AwaitOutput(ctx); err != nil {
		return err
	}
	return a.inbox.awaitIdle(ctx)
}

func (a *agent) resetDeadline() { a.deadline.Reset(a.setup.timeout()) }

// ending reports whether the agent gets no more turns.
func (a *agent) ending() bool { return a.phase > phaseServing }

func (a *agent) interrupt() {
	if a.phase == phaseInterrupted {
		return
	}
	before := a.phase.reach(phaseInterrupted)
	a.access.Close()
	a.send(agentproto.Interrupt{})
	go a.proc.Stop(a.env.cfg.Graces.Fail)
	a.leaveQueue(before)
}

// stop closes the process's input and, after grace, kills it.
func (a *agent) stop(to phase, grace time.Duration) {
	before := a.phase.reach(to)
	go a.proc.Stop(grace)
	a.leaveQueue(before)
}

// fail ends the run as failed.
func (a *agent) fail(f failure) {
	if a.phase >= phaseFailed {
		return
	}
	f.problem, f.kind = a.setup.problem(f.problem), cmp.Or(f.kind, msg.ErrorSession)
	a.failure = f
	a.access.Close()
	a.stop(phaseFailed, a.env.cfg.Graces.Fail)
}

// leaveQueue keeps further turns from the run, unless a phase before has done so. Those that are stored for it all the
// same are queued again at its end.
func (a *agent) leaveQueue(before phase) {
	if before > phaseServing {
		return
	}
	a.queue.Drain(a.row.ID)
	if err := a.env.st.Write(a.env.ctx, func(tx *store.Tx) error { return rows.DrainRun(tx, a.row.ID) }); err != nil &&
		a.env.ctx.Err() == nil {
		a.env.log.Warn("run not marked as draining", "run", a.row.ID, "err", err)
	}
}

func (a *agent) send(in agentproto.Input) {
	line, err := agentproto.Encode(in)
	if err == nil {
		err = a.proc.Send(line)
	}
	_, isAnswer := in.(agentproto.Answer)
	switch {
	case err == nil:
	case errors.Is(err, runtime.ErrClosed) && isAnswer: // it waits for that
		go a.proc.Stop(a.env.cfg.Graces.Fail)
	case errors.Is(err, runtime.ErrClosed): // or it has exited; it may still answer the turn under way
		a.deaf = true
	default:
		a.fail(failure{problem: "cannot write to the agent: " + err.Error()})
	}
}

func (a *agent) answer(answer agentproto.Answer) {
	if a.phase < phaseClosing {
		a.send(answer)
	}
}
