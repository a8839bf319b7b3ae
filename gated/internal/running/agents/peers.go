package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/runtime"
	egressrows "arizuko/pkg/egress/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// peersEvery is how often gated looks for peers whose lease has ended, and for changes whose poke was lost.
	peersEvery = time.Second
	// minPeersPause is the least time between two looks at the changes of peers, and peersShare how much longer than
	// a look the time between two is: of ten thousand waiting turns each look reads all lanes.
	minPeersPause = 20 * time.Millisecond
	peersShare    = 4
	// ownedRetry is when a lane is looked at again whose folder a peer has. The end of its last run pokes.
	ownedRetry = 5 * time.Second
)

// Peers describes several gated of one database to each other. The zero value is that of the only one.
//
// Each runs agents. A folder's turns are run by one of them at a time: the owner of the folder's live runs, which are
// its lease. Of a peer that has not renewed its lease in time the others queue the turns again. Wishes of users
// and operators, such as /stop, are in rows: a poke makes the run's owner look.
type Peers struct {
	Self   int64           // this one
	Former []int64         // of this machine and data folder; they run no more
	Groups []string        // whose agents this one runs; acme/* stands for all below acme. Nil: all
	Ended  <-chan struct{} // closed when others may take over this one's turns
}

// ended reports whether others may have taken over.
func (p Peers) ended() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

// PeersChanged makes the manager look for changes of peers.
func (m *Manager) PeersChanged() {
	if m.env.cfg.Peers.Self != 0 {
		notify(m.peers)
	}
}

// former ends the runs that a gated left behind, and queues their turns again. It keeps nothing: all is in the rows.
type former struct{ env *env }

// runs returns the runs that were left behind.
func (f *former) runs(ctx context.Context) ([]*msg.Run, error) {
	if f.env.cfg.Peers.Self == 0 {
		return factrows.UnendedRuns(ctx, f.env.st.Reader)
	}
	return rows.RunsOfGone(ctx, f.env.st.Reader)
}

// killReachable kills the agents of these runs that can be reached from here, concurrently, since each may take its
// grace: processes of this machine, and containers, since several machines may share an engine. Agents elsewhere died
// with their machine, or have lost their input.
func (f *former) killReachable(left []*msg.Run) {
	p := f.env.cfg.Peers
	var all sync.WaitGroup
	for _, r := range left {
		if p.Self != 0 && !slices.Contains(p.Former, r.Owner) && groupconfig.Runtime(r.Runtime) != groupconfig.Docker {
			continue
		}
		all.Go(func() {
			found, err := f.endOrphan(r)
			if err != nil {
				f.env.log.Error("agent of the previous gated may still be running: kill it by hand", "run", r.ID,
					"runtime", r.Runtime, "pid", r.PID, "label", r.Label, "err", err)
				return
			}
			f.env.log.Info("ended run of the previous gated", "run", r.ID, "folder", r.Folder, "killed", found)
		})
	}
	all.Wait()
}

func (f *former) endOrphan(r *msg.Run) (found bool, err error) {
	rt := f.env.cfg.Runtimes[groupconfig.Runtime(r.Runtime)]
	if rt == nil {
		return false, fmt.Errorf("unknown runtime %q", r.Runtime)
	}
	return rt.End(f.env.ctx, runtime.Orphan{RunID: r.ID, PID: r.PID, PIDStart: r.PIDStart, Label: r.Label,
		Grace: f.env.cfg.Graces.Orphan})
}

func (f *former) requeue(ctx context.Context, left []*msg.Run) error {
	for _, r := range left {
		failpoint.At(failpoint.Recovering)
		end := func(tx *store.Tx) error {
			return cmp.Or(f.env.endRun(tx, r.ID, "gated stopped"), egressrows.EndFormer(tx, r.ID, f.env.now()))
		}
		if err := f.env.persist(ctx, end); err != nil {
			return fmt.Errorf("recover run %d: %w", r.ID, err)
		}
	}
	return nil
}

// watchPeers takes over from peers whose lease has ended, and looks for changes of peers, until ctx ends.
func (m *Manager) watchPeers(ctx context.Context) {
	if m.env.cfg.Peers.Self == 0 {
		return
	}
	ticker := time.NewTicker(peersEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.env.guard("taking over from peers", func() { m.former.takeOver(ctx) })
			m.PeersChanged() // in case a poke was lost
		case <-m.peers:
			began := time.Now()
			m.env.guard("looking at what peers have changed", m.lookAtPeers)
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(minPeersPause, peersShare*time.Since(began))):
			}
		}
	}
}

// takeOver fences peers whose lease has ended and queues their turns again.
func (f *former) takeOver(ctx context.Context) {
	expired, err := rows.ExpiredProcesses(ctx, f.env.st.Reader, gatedName, f.env.cfg.Peers.Self)
	if err != nil {
		return // the next tick looks again
	}
	if expired > 0 {
		var fenced []int64
		err := f.env.st.Write(ctx, func(tx *store.Tx) (err error) {
			fenced, err = rows.FenceExpired(tx, gatedName, f.env.cfg.Peers.Self)
			return err
		})
		if err != nil {
			return
		}
		f.env.log.Warn("a gated has not renewed its lease: taking over its turns", "processes", fenced)
	}
	left, err := rows.RunsOfGone(ctx, f.env.st.Reader)
	if err != nil || len(left) == 0 {
		return
	}
	f.killReachable(left)
	if err := f.requeue(ctx, left); err != nil {
		f.env.log.Error("taking over runs failed; retrying", "err", err)
		return
	}
	f.env.log.Info("took over the turns of runs of another gated", "count", len(left))
}

// lookAtPeers looks in the rows for other changes that a peer may have made: new turns, wishes for runs, and files that
// turns wait for. Every poke makes it look, and most are for one run or for none.
func (m *Manager) lookAtPeers() {
	states, err := rows.RunStates(m.env.ctx, m.env.st.Reader, m.env.cfg.Peers.Self)
	if err != nil {
		return // the next tick looks again
	}
	asks := false
	for id, state := range states { // the run's own changes of its turns are no reason to look
		before, r := m.states[id], m.live.get(id)
		asks = asks || state.Asks != before.Asks
		if r == nil {
			delete(states, id) // it has just begun, and has not read the rows
			continue
		}
		if before.Turns = state.Turns; state != before || state.Notes || state.Turns != r.agent.holds.Load() {
			r.inbox.control(ctlReread)
		}
	}
	if m.states = states; asks {
		m.AskEnded()
	}
	if wait, err := rows.FilesWait(m.env.ctx, m.env.st.Reader); err == nil && wait {
		m.filesWait.Store(true)
		notify(m.poked)
	}
	m.Revived()
}

// isForPeer reports whether the turns of a lane are for a peer: its agents work in the folder, or this gated runs none
// there.
func (r turnRows) isForPeer(lane string) (bool, error) {
	folder := msg.FolderOfLane(lane)
	if r.env.cfg.Peers.Self == 0 {
		return false, nil
	}
	if !r.env.cfg.Peers.runs(folder) {
		return true, nil
	}
	owner, err := rows.FolderOwner(r.env.ctx, r.env.st.Reader, folder, r.env.cfg.Peers.Self)
	return owner != 0, err
}

// runs reports whether this gated runs the agents of a group.
func (p Peers) runs(folder string) bool {
	return len(p.Groups) == 0 || slices.ContainsFunc(p.Groups, func(pattern string) bool {
		above, below := strings.CutSuffix(pattern, "/*")
		return pattern == folder || below && strings.HasPrefix(folder, above+"/")
	})
}

// gatedName is the daemon whose processes are peers.
const gatedName = "gated"
