package agents

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// rows is the queue's view of the turns table.
type rows struct{ m *Manager }

func (r rows) Next(lane string, after, now int64) (queue.Next, error) {
	others, err := r.m.isForPeer(lane)
	if others {
		return queue.Next{Through: after, Until: now + ownedRetry.Milliseconds()}, nil
	}
	var next store.NextQueued
	if err == nil {
		next, err = r.m.st.NextQueued(r.m.ctx, lane, after, now)
	}
	if err != nil {
		if r.m.ctx.Err() == nil {
			r.m.log.Error("reading queued turns failed; retrying", "folder", lane, "err", err)
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
	m.wg.Go(func() { m.carryOutStops(ctx) })
	m.wg.Go(func() { m.expireAsks(ctx) })
	m.wg.Go(func() { m.watchPeers(ctx) })
	m.Poked() // files may have been downloaded while no gated ran
	for {
		select {
		case <-m.wake:
			m.guard("starting turns", m.startStored)
		case <-ticker.C:
			m.guard("starting turns", m.onTick)
			m.guard("looking for changed configurations", m.watchConfigs)
			m.guard("marking messages that wait", m.markWaiting)
		case <-m.poked:
			m.guard("looking for downloaded files", m.endFileWaits)
		case <-sweep.C:
			m.guard("looking for open work", m.sweep)
		case <-ctx.Done():
			m.shutdown()
			return nil
		}
	}
}

// guard runs a step of a loop. A panic ends the step and not the daemon.
func (m *Manager) guard(step string, fn func()) {
	defer func() {
		if cause := recover(); cause != nil {
			m.log.Error("panic", "step", step, "panic", cause, "stack", string(debug.Stack()))
		}
	}()
	fn()
}

func (m *Manager) onTick() {
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Tick(m.idle) })
}

// watchConfigs ends runs whose agents are run differently by now.
func (m *Manager) watchConfigs() {
	runs := m.liveRuns(func(*run) bool { return true })
	if len(runs) == 0 {
		return
	}
	version, err := m.st.RoutingVersion(m.ctx)
	if err != nil || version == m.configs {
		return // the next tick looks again
	}
	m.configs = version
	for _, r := range runs {
		r.control(ctlConfig)
	}
}

// startStored takes the new turns of lanes to the queue.
func (m *Manager) startStored() {
	m.mu.Lock()
	lanes := slices.Collect(maps.Keys(m.stored))
	clear(m.stored)
	m.mu.Unlock()
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Stored(lanes...) })
}

// endFileWaits lets the turns start whose rows have no pending file any more.
func (m *Manager) endFileWaits() {
	ready, err := m.st.FilesReady(m.ctx)
	if err != nil || len(ready) == 0 {
		return // the next poke or sweep looks again
	}
	err = m.st.Write(m.ctx, func(tx *store.Tx) error {
		for id := range ready {
			if err := tx.EndWait(id, msg.WaitsFiles); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		lanes := slices.Collect(maps.Values(ready))
		m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Changed(lanes...) })
	}
}

// sweep finds open work again from the rows: nothing waits for ever for a call that
// was lost.
func (m *Manager) sweep() {
	m.endFileWaits()
	notify(m.stops)
	for _, r := range m.liveRuns(func(*run) bool { return true }) {
		r.control(ctlReread)
	}
	lanes, err := m.st.QueuedLanes(m.ctx)
	if err != nil {
		return // logged by the next read of a lane
	}
	m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Stored(lanes...) })
}

// notify wakes the receiver of a channel with room for one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (m *Manager) shutdown() {
	m.mu.Lock()
	m.closing = true
	for _, r := range m.runs {
		r.control(ctlShutdown)
	}
	m.mu.Unlock()
	grace := maxShutdown
	if m.cfg.Peers.ended() {
		grace = 0
	}
	hurry := time.AfterFunc(grace, m.cancel)
	defer hurry.Stop()
	m.wg.Wait()
	m.cancel()
}

// carryOutStops ends what open /stops cover, page by page, until ctx ends.
func (m *Manager) carryOutStops(ctx context.Context) {
	for {
		m.guard("carrying out a /stop", func() { m.carryOutPages(ctx) })
		select {
		case <-ctx.Done():
			return
		case <-m.stops:
		}
	}
}

func (m *Manager) carryOutPages(ctx context.Context) {
	lanes := map[string]bool{}
	defer func() { m.changed(lanes) }() // once: a look at a lane walks over all that a /stop covers
	for ctx.Err() == nil {
		stops, err := m.st.Stops(ctx)
		if err != nil || len(stops) == 0 {
			return // the next sweep retries
		}
		var cancelled []*msg.Turn
		err = m.persist(ctx, func(tx *store.Tx) (err error) {
			cancelled, _, err = tx.ContinueStop(stops[0], m.now())
			return err
		})
		if err != nil {
			return
		}
		m.interruptRuns(cancelled, lanes)
	}
}

// schedule makes a decision of the queue and carries it out in one step: the
// decisions of two goroutines must reach a run in their order.
func (m *Manager) schedule(decide func(*queue.GroupQueue) queue.Actions) {
	m.sched.Lock()
	defer m.sched.Unlock()
	a := decide(m.queue)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range a.Start {
		if !m.closing {
			m.wg.Add(1)
			go m.start(t)
		}
	}
	for _, p := range a.Pipe {
		if r := m.runs[p.RunID]; r != nil {
			r.inbox.pipe(p.Turn)
		}
	}
	for _, id := range a.Close {
		if r := m.runs[id]; r != nil {
			r.control(ctlClose)
		}
	}
}
