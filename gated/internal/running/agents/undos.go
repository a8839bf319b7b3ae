package agents

import (
	"context"
	"errors"
	"strings"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/snapshots"
	"arizuko/gated/internal/undo"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// undoRetry is how often an undo that waits for its topic's agent to end is looked at.
const undoRetry = 200 * time.Millisecond

// undos carries out the /undos and /redos in the rows: the files first, then the rows in one commit. A crash in between
// is no harm, since both are the same when repeated. Only its goroutine has state.
type undos struct {
	env    *env
	files  *snapshots.Store
	cancel func(...*msg.Turn) // interrupts the work of turns that were cancelled, and lets their lanes go on
	found  chan struct{}      // one may be left to carry out
}

// carryOut carries out open undos until ctx ends.
func (u *undos) carryOut(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.found:
		case <-time.After(u.carryOutOpen(ctx)):
		}
	}
}

// carryOutOpen carries out what can be. It returns after which time to look again.
func (u *undos) carryOutOpen(ctx context.Context) (again time.Duration) {
	open, err := rows.OpenUndos(ctx, u.env.st.Reader)
	if err != nil {
		return maxRetryDelay
	}
	again = time.Hour
	for _, o := range open {
		if !u.env.cfg.Peers.runs(o.Folder) {
			continue // its files are elsewhere
		}
		live, err := rows.LiveProcesses(ctx, u.env.st.Reader, o.Folder, o.Topic)
		if err != nil || live {
			again = undoRetry
			continue
		}
		if err := u.finish(ctx, o); err != nil && ctx.Err() == nil {
			u.env.log.Error("undo not carried out; retrying", "undo", o.ID, "turn", o.TurnID, "folder", o.Folder,
				"err", err)
			again = min(again, maxRetryDelay)
		}
	}
	return again
}

// finish carries out one undo. It ends even after a panic, or if the database refuses the change.
func (u *undos) finish(ctx context.Context, o *rows.Undo) error {
	turn, err := u.env.st.Turn(ctx, o.TurnID)
	if err != nil {
		return err
	}
	out := undo.Outside{}
	if turn != nil && !turn.State.IsOpen() {
		out.Failed = true // unless it gets to the end
		u.env.guard("taking files of a turn back", func() { out, err = u.restore(o) })
	}
	if err == nil && !o.Redo && turn != nil && out.Restored() && u.env.cfg.EndWindow != nil {
		u.env.guard("ending the windows of a turn", func() { err = u.endWindows(ctx, turn, &out) })
	}
	if err != nil {
		return err
	}
	failpoint.At(failpoint.Restored)
	stopped, err := u.end(ctx, o, out)
	if errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrStale) {
		u.env.log.Error("rows of a turn not changed", "undo", o.ID, "turn", o.TurnID, "folder", o.Folder, "err", err)
		out.Failed = true
		stopped, err = u.end(ctx, o, out)
	}
	if err != nil && !errors.Is(err, store.ErrStale) { // stale: another gated has finished it
		return err
	}
	u.env.log.Info("turn taken back or done again", "turn", o.TurnID, "folder", o.Folder, "redo", o.Redo, "by", o.By,
		"files", out.Files.Restored, "changed", len(out.Files.Changed), "problem", out.Problem)
	if u.env.cfg.RemindersChanged != nil {
		u.env.cfg.RemindersChanged()
	}
	if turn != nil {
		u.cancel(append(stopped, turn)...) // which lets the next turn of its lane begin
	}
	return u.files.Forget(o.Folder, o.ID)
}

func (u *undos) end(ctx context.Context, o *rows.Undo, out undo.Outside) (stopped []*msg.Turn, err error) {
	out.Next = u.env.cfg.NextSlot
	err = u.env.st.Write(ctx, func(tx *store.Tx) error {
		stopped, err = undo.Finish(tx, o, out, u.env.cfg.Location, u.env.now())
		return err
	})
	return stopped, err
}

// restore restores the files.
func (u *undos) restore(o *rows.Undo) (out undo.Outside, err error) {
	side := snapshots.Before
	if o.Redo {
		side = snapshots.After
	}
	report, err := u.files.Restore(snapshots.Request{Folder: o.Folder, Op: o.ID, Turn: o.TurnID, To: side,
		Rest: o.Rest})
	if errors.Is(err, snapshots.ErrUnfinished) {
		return out, err
	}
	if err != nil {
		u.env.log.Error("files of a turn not restored", "turn", o.TurnID, "folder", o.Folder, "err", err)
		problem := strings.ReplaceAll(u.env.cfg.Redact(err.Error()), u.env.cfg.Data+"/", "")
		return undo.Outside{Problem: problem}, nil
	}
	return undo.Outside{Files: filesOf(report)}, nil
}

// endWindows closes the windows that the turn has opened.
func (u *undos) endWindows(ctx context.Context, turn *msg.Turn, out *undo.Outside) error {
	windows, err := undo.Windows(ctx, u.env.st.Reader, turn, u.env.now())
	for i, w := range windows {
		if err := u.env.cfg.EndWindow(ctx, w); err != nil {
			u.env.log.Warn("windows not closed", "turn", turn.ID, "chat", w.ChatJID, "err", err)
			out.Open = len(windows) - i
			break
		}
		out.Closed++
	}
	return err
}

func filesOf(r snapshots.Report) undo.Files {
	f := undo.Files{Restored: r.Restored, Paths: r.Paths, Changed: r.Changed, Refused: r.Refused, Unknown: r.Unknown}
	for _, n := range r.NotCovered {
		f.NotCovered = append(f.NotCovered, n.Path+" ("+n.Reason+")")
	}
	return f
}

// endFormer ends what the former gated has begun to record.
func (u *undos) endFormer(ctx context.Context, folders []string) error {
	last, err := rows.LastTurn(ctx, u.env.st.Reader)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !u.env.cfg.Peers.runs(folder) {
			continue
		}
		if err := u.files.EndFormer(folder, last); err != nil {
			u.env.log.Warn("files kept for /undo cannot be read", "folder", folder, "err", err)
		}
	}
	return nil
}

// record lets what changes in the group's folder from now on be a turn's, 0 for none. It is called before the agent
// gets a prompt and after it has answered.
func (r *run) record(turn int64) {
	before := r.recorded
	if before == turn {
		return
	}
	r.recorded = turn
	if before != 0 {
		r.noteSnapshot(before, r.m.undos.files.End(r.row.Folder, before))
	}
	if turn != 0 {
		r.noteSnapshot(turn, r.m.undos.files.Begin(r.row.Folder, turn))
	}
}

func (r *run) noteSnapshot(turn int64, err error) {
	if err != nil {
		r.env.log.Warn("changes of files are not remembered for /undo", "turn", turn, "folder", r.row.Folder,
			"err", err)
	}
}
