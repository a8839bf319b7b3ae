package agents

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// turnRows is the queue's view of the turns table.
type turnRows struct{ env *env }

func (r turnRows) Next(lane string, after, now int64) (queue.Next, error) {
	others, err := r.isForPeer(lane)
	if others {
		return queue.Next{Through: after, Until: now + ownedRetry.Milliseconds()}, nil
	}
	var next rows.NextQueued
	if err == nil {
		next, err = rows.FindQueued(r.env.ctx, r.env.st.Reader, lane, after, now)
	}
	if err != nil {
		if r.env.ctx.Err() == nil {
			r.env.log.Error("reading queued turns failed; retrying", "folder", lane, "err", err)
		}
		return queue.Next{}, err
	}
	found := queue.Next{Through: next.Through, Until: next.Until}
	if next.Turn != nil {
		found.Turn, found.Found = queue.TurnOf(next.Turn), true
	}
	return found, nil
}

// Run starts turns, and closes idle agents, until ctx ends. Then it lets every agent
// finish its frame and stops it. The next gated queues the unanswered turns again.
func (m *Manager) Run(ctx context.Context) error {
	ticker, sweep := time.NewTicker(tick), time.NewTicker(sweepInterval)
	defer ticker.Stop()
	defer sweep.Stop()
	m.loops.Go(func() { m.stops.carryOut(ctx) })
	m.loops.Go(func() { m.undos.carryOut(ctx) })
	m.loops.Go(func() { m.asks.expire(ctx) })
	m.loops.Go(func() { m.watchPeers(ctx) })
	m.Poked() // files may have been downloaded while no gated ran
	for {
		select {
		case <-m.fresh.ready:
			m.env.guard("starting turns", func() { m.stored(m.fresh.receive()) })
		case <-ticker.C:
			m.env.guard("starting turns", func() {
				m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Tick(m.idle) })
			})
			m.env.guard("looking for changed configurations", m.watchConfigs)
			m.env.guard("marking messages that wait", m.marks.mark)
		case <-m.poked:
			m.env.guard("looking for downloaded files", m.endFileWaits)
		case <-sweep.C:
			m.env.guard("looking for open work", m.sweep)
		case <-ctx.Done():
			m.shutdown()
			return nil
		}
	}
}

// guard runs a step of a loop. A panic ends the step and not the daemon.
func (e *env) guard(step string, fn func()) {
	defer func() {
		if cause := recover(); cause != nil {
			e.log.Error("panic", "step", step, "panic", cause, "stack", string(debug.Stack()))
		}
	}()
	fn()
}

// watchConfigs ends runs whose agents are run differently by now.
func (m *Manager) watchConfigs() {
	if m.live.count() == 0 {
		return
	}
	version, err := m.env.st.RoutingVersion(m.env.ctx)
	if err != nil || version == m.configs {
		return // the next tick looks again
	}
	m.configs = version
	m.live.signal(ctlConfig)
}

// stored makes the queue look for new turns in lanes.
func (m *Manager) stored(lanes []string) {
	m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Stored(lanes...) })
}

// endFileWaits lets the turns start whose rows have no pending file any more. Every poke calls it, and few turns have
// files: it looks only while some turns wait for them.
func (m *Manager) endFileWaits() {
	if !m.filesWait.Swap(false) {
		return
	}
	wait, err := rows.FilesWait(m.env.ctx, m.env.st.Reader)
	if !wait && err == nil {
		return
	}
	m.filesWait.Store(true)
	ready, err := rows.FilesReady(m.env.ctx, m.env.st.Reader)
	if err != nil || len(ready) == 0 {
		return // the next poke or sweep looks again
	}
	err = m.env.st.Write(m.env.ctx, func(tx *store.Tx) error {
		for id := range ready {
			if err := rows.EndWait(tx, id, msg.WaitsFiles); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		lanes := slices.Collect(maps.Values(ready))
		m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Changed(lanes...) })
	}
}

// sweep finds open work again from the rows: nothing waits for ever for a call that
// was lost.
func (m *Manager) sweep() {
	m.filesWait.Store(true)
	m.endFileWaits()
	notify(m.stops.found)
	notify(m.undos.found)
	m.live.signal(ctlReread)
	if lanes, err := rows.QueuedLanes(m.env.ctx, m.env.st.Reader); err == nil { // else the next read of a lane logs it
		m.stored(lanes)
	}
}

// notify wakes the receiver of a channel with room for one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (m *Manager) shutdown() {
	m.live.shutdown()
	grace := maxShutdown
	if m.env.cfg.Peers.ended() {
		grace = 0
	}
	hurry := time.AfterFunc(grace, m.cancel)
	defer hurry.Stop()
	m.loops.Wait()
	m.live.wg.Wait()
	m.cancel()
}

// stopPause is the time between the pages of a /stop. Without it another process that waits for the write lock would
// rarely get it: this one takes it again before the other has woken up.
const stopPause = 10 * time.Millisecond

// stops carries out the /stops in the rows. Only its goroutine has state.
type stops struct {
	env   *env
	live  *liveRuns
	sched *scheduler
	found chan struct{} // a /stop may be left to carry out
}

// carryOut ends the turns that open /stops cover, page by page, until ctx ends.
func (s *stops) carryOut(ctx context.Context) {
	for {
		s.env.guard("carrying out a /stop", func() { s.carryOutPages(ctx) })
		select {
		case <-ctx.Done():
			return
		case <-s.found:
		}
	}
}

func (s *stops) carryOutPages(ctx context.Context) {
	lanes := map[string]bool{}
	defer func() { s.sched.changed(lanes) }() // once: a look at a lane walks over all that a /stop covers
	for ctx.Err() == nil {
		stops, err := rows.Stops(ctx, s.env.st.Reader, "")
		if err != nil || len(stops) == 0 {
			return // the next sweep retries
		}
		var cancelled []*msg.Turn
		err = s.env.persist(ctx, func(tx *store.Tx) (err error) {
			cancelled, _, err = rows.ContinueStop(tx, stops[0], s.env.now())
			return err
		})
		if err != nil {
			return
		}
		s.live.reread(cancelled, lanes)
		select {
		case <-ctx.Done():
		case <-time.After(stopPause):
		}
	}
}
