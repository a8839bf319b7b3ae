package rows

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// RunColumns are the columns of runs r that ScanRun scans.
const RunColumns = `r.id, r.folder, r.topic, r.chat_jid, r.thread_id, r.runtime, ifnull(r.pid,0), ifnull(r.pid_start,0),
	ifnull(r.label,''), r.started_at, r.draining, ifnull(r.closed_at,0), ifnull(r.ended_at,0), r.owner`

// ScanRun scans RunColumns.
func ScanRun(scan store.Scan) (*msg.Run, error) {
	var r msg.Run
	err := scan(&r.ID, &r.Folder, &r.Topic, &r.ChatJID, &r.ThreadID, &r.Runtime, &r.PID, &r.PIDStart,
		&r.Label, &r.StartedAt, &r.Draining, &r.ClosedAt, &r.EndedAt, &r.Owner)
	return &r, err
}

// UnendedRuns returns the runs whose process may still be running.
func UnendedRuns(ctx context.Context, r store.Reader) ([]*msg.Run, error) {
	return store.All(ctx, r, ScanRun, `SELECT `+RunColumns+` FROM runs r INDEXED BY runs_unended WHERE r.ended_at IS NULL`)
}
