package store

import (
	"context"

	"arizuko/pkg/msg"
)

// QueuedLanes returns the lanes with queued turns, the one with the oldest first.
func (r Reader) QueuedLanes(ctx context.Context) ([]string, error) {
	return collect(ctx, r, func(scan scanner) (lane string, err error) {
		var oldest int64
		err = scan(&lane, &oldest)
		return lane, err
	}, queryQueuedLanes)
}

// CountQueued is the number of queued turns.
func (r Reader) CountQueued(ctx context.Context) (int, error) {
	return value[int](ctx, r, queryQueuedCount)
}

// NextQueued is the result of a search for a lane's next turn.
type NextQueued struct {
	Turn *msg.Turn // nil for none
	// Through is the id up to which no turn may start before Until, in unix ms, unless
	// one of them changes. Until is 0 if nothing was found to wait.
	Through int64
	Until   int64
}

// queuedPage is how many turns of a lane one read looks at.
const queuedPage = 1000

// NextQueued looks for the oldest turn of a lane, of those after an id, that may
// start at the time now: it does not wait for anything, and no older turn of its
// conversation is queued.
func (r Reader) NextQueued(ctx context.Context, lane string, after, now int64) (next NextQueued, err error) {
	next.Through = after
	var found int64
	for rows := queuedPage; rows == queuedPage && found == 0; {
		rows = 0
		err = r.each(ctx, func(scan scanner) (bool, error) {
			var id, notBefore int64
			var behind, stopped, later bool
			if err := scan(&id, &notBefore, &behind, &stopped, &later); err != nil {
				return false, err
			}
			rows++
			switch {
			case stopped, behind: // a stopped one never starts
				next.Through = id
				return true, nil
			case notBefore <= now || notBefore > now+MaxWait || later:
				found = id
				return false, nil
			}
			next.Through = id
			if next.Until == 0 || notBefore < next.Until {
				next.Until = notBefore
			}
			return true, nil
		}, queryNextQueued, lane, next.Through, queuedPage, now)
		if err != nil {
			return next, err
		}
	}
	if found != 0 {
		next.Turn, err = r.Turn(ctx, found)
	}
	return next, err
}

// FilesReady returns the queued turns, with their lanes, that wait for files of
// which none is pending any more.
func (r Reader) FilesReady(ctx context.Context) (map[int64]string, error) {
	ready := map[int64]string{}
	err := r.each(ctx, func(scan scanner) (bool, error) {
		var id int64
		var lane string
		err := scan(&id, &lane)
		ready[id] = lane
		return true, err
	}, queryFilesReady)
	return ready, err
}

// EndWait lets a queued turn start that waits for something.
func (tx *Tx) EndWait(id int64, what msg.WaitsFor) error {
	tx.pokePeers()
	return tx.exec(updateWaitOver, id, what)
}
