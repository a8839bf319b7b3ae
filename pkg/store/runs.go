package store

import (
	"context"

	"arizuko/pkg/msg"
)

const RunColumns = `r.id, r.folder, r.topic, r.chat_jid, r.thread_id, r.runtime, ifnull(r.pid,0), ifnull(r.pid_start,0),
	ifnull(r.label,''), r.started_at, r.draining, ifnull(r.closed_at,0), ifnull(r.ended_at,0), r.owner`

func ScanRun(scan Scan) (*msg.Run, error) {
	var r msg.Run
	err := scan(&r.ID, &r.Folder, &r.Topic, &r.ChatJID, &r.ThreadID, &r.Runtime, &r.PID, &r.PIDStart,
		&r.Label, &r.StartedAt, &r.Draining, &r.ClosedAt, &r.EndedAt, &r.Owner)
	return &r, err
}

// UnendedRuns returns the runs whose process may still be running.
func (r Reader) UnendedRuns(ctx context.Context) ([]*msg.Run, error) {
	return All(ctx, r, ScanRun, queryUnended)
}

// OutStateOf is the initial state of a chat's outbound rows. Between groups there
// is not a delivery: a row is sent once it is written.
func OutStateOf(chatJID string) msg.OutState {
	if platform, _ := msg.SplitJID(chatJID); platform == msg.PlatformGroup {
		return msg.OutSent
	}
	return msg.OutQueued
}
