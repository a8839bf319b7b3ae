package store

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"arizuko/pkg/msg"
)

// History is a table that grows, and whose old rows can be deleted.
type History string

// The kinds of history. What belongs to a row goes with it: the tool calls, questions, progress and previews of a turn,
// the deliveries, transcripts, forks, closed polls with their votes and reminder slots of a message, the session log of
// a run.
const (
	HistoryTurns    History = "turns"
	HistoryMessages History = "messages"
	HistoryRuns     History = "runs"

	HistoryBroadcasts History = "broadcasts"
)

// purgeQueries are the statements for one kind of history.
type purgeQueries struct {
	page    string
	isOld   string
	deletes []string // the row itself last
}

func (h History) queries() purgeQueries {
	switch h {
	case HistoryTurns:
		return purgeQueries{queryTurnsPage, queryTurnIsOld,
			[]string{deleteToolCalls, deleteTurnProgress, deletePreviews, deleteAsks, deleteTurn}}
	case HistoryMessages:
		return purgeQueries{queryMessagesPage, queryMessageIsOld,
			[]string{deleteDeliveries, deleteTranscripts, deleteForks, deletePollVotes, deletePollRefs, deletePolls,
				deleteSlots, updateLastSlot, deleteMessage}}
	case HistoryRuns:
		return purgeQueries{queryRunsPage, queryRunIsOld, []string{deleteRunLog, deleteRun}}
	case HistoryBroadcasts:
		return purgeQueries{queryBroadcastsPage, queryBroadcastIsOld, []string{deleteBroadcast}}
	}
	panic("unknown history " + string(h))
}

// OldRows reads limit rows after an id and returns those that are older than the
// time before, in unix ms, and the id to continue after. It returns none at the end,
// which is where no row of a page is old.
func (r Reader) OldRows(ctx context.Context, h History, after, before int64, limit int) (ids []int64, next int64,
	err error) {
	next = after
	err = r.each(ctx, func(scan scanner) (bool, error) {
		var old bool
		err := scan(&next, &old)
		if old {
			ids = append(ids, next)
		}
		return true, err
	}, h.queries().page, after, before, limit)
	return ids, next, err
}

// Purge deletes those of the rows that are older than the time before, in unix ms,
// and returns how many. It leaves a row that waits for something, or that a row which
// is left needs.
func (tx *Tx) Purge(h History, ids []int64, before int64) (deleted int, err error) {
	q := h.queries()
	for _, id := range ids {
		var old bool
		if _, err := tx.find([]any{&old}, q.isOld, id, before); err != nil {
			return deleted, fmt.Errorf("purge %s %d: %w", h, id, err)
		}
		if !old {
			continue
		}
		for _, query := range q.deletes {
			if err := tx.exec(query, id); err != nil {
				return deleted, fmt.Errorf("purge %s %d: %w", h, id, err)
			}
		}
		deleted++
	}
	return deleted, nil
}

// RunExists reports whether a run is stored.
func (r Reader) RunExists(ctx context.Context, id int64) (bool, error) {
	return value[bool](ctx, r, queryRunExists, id)
}

// AttachmentPaths reads limit rows after an id and returns the paths of their
// attachments, and the id to continue after, 0 at the end.
func (r Reader) AttachmentPaths(ctx context.Context, after int64, limit int) (paths []string, next int64, err error) {
	return r.attachmentPaths(ctx, queryAttachments, after, limit)
}

// NeededFiles returns the paths of the attachments of open turns, and of messages that are not sent yet.
func (r Reader) NeededFiles(ctx context.Context) (map[string]bool, error) {
	paths, _, err := r.attachmentPaths(ctx, queryNeededFiles)
	needed := map[string]bool{}
	for _, name := range paths {
		needed[path.Clean(name)] = true
	}
	return needed, err
}

// attachmentPaths reads rows of an id and a list of attachments. last is the last id.
func (r Reader) attachmentPaths(ctx context.Context, query string, args ...any) (paths []string, last int64,
	err error) {
	err = r.each(ctx, func(scan scanner) (bool, error) {
		var list *string
		if err := scan(&last, &list); err != nil {
			return false, err
		}
		var all []msg.Attachment
		if list != nil && json.Unmarshal([]byte(*list), &all) == nil {
			for _, a := range all {
				paths = append(paths, a.Path)
			}
		}
		return true, nil
	}, query, args...)
	return paths, last, err
}
