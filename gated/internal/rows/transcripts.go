package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// MaxTranscript is how long a transcript may be, in bytes: about an hour of speech.
const MaxTranscript = 64 << 10

// WantedTranscript is an audio file that is to be transcribed before its turn starts.
type WantedTranscript struct {
	ID, MessageID, TurnID int64
	N                     int // of the attachment, from 1
	Folder                string
	Until                 int64 // when the turn starts without it, unix ms; 0 as long as the file is not there
	TurnCreated           int64 // unix ms
	TurnWaits             bool  // else it has started without, or has ended
	Pending               bool  // the file is still to be downloaded
	File                  msg.Attachment
}

// WantedTranscripts returns at most limit files to transcribe, the oldest first.
func WantedTranscripts(ctx context.Context, r store.Reader, limit int) ([]WantedTranscript, error) {
	// Few are wanted at once. A row is of a turn that waits, or of one that has started or ended meanwhile.
	const query = `SELECT x.id, x.message_id, x.n, x.turn_id, x.folder, x.until, m.attachments, m.pending_files, ifnull(t.created_at, 0),
		CASE WHEN t.state = 'queued' AND t.waits_for = 'files' THEN 1 ELSE 0 END
		FROM transcripts x INDEXED BY transcripts_wanted CROSS JOIN messages m ON m.id = x.message_id LEFT JOIN turns t ON t.id = x.turn_id
		WHERE x.state = 'wanted' ORDER BY x.id LIMIT ?+0`
	return store.All(ctx, r, func(scan store.Scan) (w WantedTranscript, err error) {
		var files sql.NullString
		if err := scan(&w.ID, &w.MessageID, &w.N, &w.TurnID, &w.Folder, &w.Until, &files, &w.Pending, &w.TurnCreated,
			&w.TurnWaits); err != nil {
			return w, err
		}
		var all []msg.Attachment
		if files.Valid && json.Unmarshal([]byte(files.String), &all) == nil && w.N <= len(all) {
			w.File = all[w.N-1]
		}
		return w, nil
	}, query, limit)
}

// WantTranscripts asks for the transcripts of a message's audio files, before a turn starts that waits for files. Those
// that were asked for before stay as they are. id is the row that the turn got, m or one derived from it.
func WantTranscripts(tx *store.Tx, m *msg.Message, id int64, turn *msg.Turn, now int64) error {
	const query = `INSERT INTO transcripts (message_id, n, turn_id, folder, state, updated_at) VALUES (?,?,?,?,'wanted',?) ON CONFLICT (message_id, n) DO NOTHING`
	for i := range m.Attachments {
		a := &m.Attachments[i]
		if !a.IsAudio() || a.Error != "" {
			continue
		}
		if err := tx.Exec(query, id, i+1, turn.ID, turn.Folder, now); err != nil {
			return err
		}
	}
	return nil
}

// HoldForTranscript sets when a turn starts without a transcript, in unix ms. The first time holds.
func HoldForTranscript(tx *store.Tx, id, turn, until, now int64) error {
	const updateTranscriptUntil = `UPDATE transcripts SET until = ?2, updated_at = ?3 WHERE id = ?1 AND state = 'wanted' AND until = 0`
	const updateHeldTurn = `UPDATE turns SET not_before = max(not_before, ?2) WHERE id = ?1 AND state = 'queued' AND waits_for = 'files'`
	tx.Note(failpoint.HoldTranscript)
	n, err := tx.Change(updateTranscriptUntil, id, until, now)
	if err != nil || n == 0 {
		return err
	}
	return tx.Exec(updateHeldTurn, turn, until)
}

// EndTranscript stores a transcript, or why there is none, unless that was done before. The text is cut at
// MaxTranscript.
func EndTranscript(tx *store.Tx, id int64, text, problem string, now int64) (stored bool, err error) {
	const query = `UPDATE transcripts SET state = ?2, text = ?3, error = ?4, updated_at = ?5 WHERE id = ?1 AND state = 'wanted'`
	tx.Note(failpoint.EndTranscript)
	state := "done"
	if problem != "" {
		state, text = "failed", ""
	}
	text = strings.TrimSpace(store.CleanText(text))
	if len(text) > MaxTranscript {
		text = store.Truncate(text, MaxTranscript-len(msg.CutMark)) + msg.CutMark
	}
	n, err := tx.Change(query, id, state, text, store.CleanText(problem), now)
	return n > 0, err
}
