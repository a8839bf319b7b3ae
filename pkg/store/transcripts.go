package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
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

// WantedTranscripts returns at most limit of what is to be transcribed, the oldest first.
func (r Reader) WantedTranscripts(ctx context.Context, limit int) ([]WantedTranscript, error) {
	return collect(ctx, r, func(scan scanner) (w WantedTranscript, err error) {
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
	}, queryWantedTranscripts, limit)
}

// WantTranscripts asks for the transcripts of a message's audio files, before a turn starts that waits for files. Those
// that were asked for before stay as they are. id is the row that the turn got, m or one derived from it.
func (tx *Tx) WantTranscripts(m *msg.Message, id int64, turn *msg.Turn, now int64) error {
	for i := range m.Attachments {
		a := &m.Attachments[i]
		if !a.IsAudio() || a.Error != "" {
			continue
		}
		if err := tx.exec(insertTranscript, id, i+1, turn.ID, turn.Folder, now); err != nil {
			return err
		}
	}
	return nil
}

// HoldForTranscript sets when a turn starts without a transcript, in unix ms. The first time holds.
func (tx *Tx) HoldForTranscript(id, turn, until, now int64) error {
	tx.note(failpoint.HoldTranscript)
	n, err := tx.change(updateTranscriptUntil, id, until, now)
	if err != nil || n == 0 {
		return err
	}
	return tx.exec(updateHeldTurn, turn, until)
}

// EndTranscript stores a transcript, or why there is none, unless that was done before. The text is cut at
// MaxTranscript.
func (tx *Tx) EndTranscript(id int64, text, problem string, now int64) (stored bool, err error) {
	tx.note(failpoint.EndTranscript)
	state := "done"
	if problem != "" {
		state, text = "failed", ""
	}
	text = strings.TrimSpace(cleanText(text))
	if len(text) > MaxTranscript {
		text = truncate(text, MaxTranscript-len(msg.CutMark)) + msg.CutMark
	}
	n, err := tx.change(updateTranscriptEnd, id, state, text, cleanText(problem), now)
	return n > 0, err
}

// FillTranscripts adds their transcripts to the audio files of messages.
func (r Reader) FillTranscripts(ctx context.Context, rows []*msg.Message) error {
	for _, m := range rows {
		if !m.HasAudio() {
			continue
		}
		err := r.each(ctx, func(scan scanner) (bool, error) {
			var n int
			t := &msg.Transcript{}
			if err := scan(&n, &t.Text, &t.Error); err != nil {
				return false, err
			}
			if n <= len(m.Attachments) {
				m.Attachments[n-1].Transcript = t
			}
			return true, nil
		}, queryTranscripts, m.ID)
		if err != nil {
			return fmt.Errorf("transcripts of message %d: %w", m.ID, err)
		}
	}
	return nil
}
