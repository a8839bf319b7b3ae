package gateway

import (
	"context"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// transcripts are those that a turn waits for, if its group has audio files transcribed.
type transcripts struct {
	tx     *store.Tx
	folder string
	posts  []*msg.Message // that the turn's rows answer

	read, on bool // the group's configuration is read; it names a command
	err      error
}

// wants reports whether a message has audio files that are to be transcribed.
func (t *transcripts) wants(m *msg.Message) bool {
	if !m.HasAudio() {
		return false
	}
	if t.read {
		return t.on
	}
	t.read = true
	group, err := t.tx.Group(context.Background(), t.folder)
	if err != nil || group == nil {
		t.err = err
		return false
	}
	c, err := groupconfig.Parse(group.Config) // with mistakes in it no agent runs, and its turn says so
	t.on = err == nil && c.Transcribe != ""
	return t.on
}

// store asks for the transcripts, once the turn has its id. ids are the rows of the entries.
func (t *transcripts) store(entries []decide.Entry, ids []int64, p *plan, turn *msg.Turn) error {
	if t.err != nil || !t.on {
		return t.err
	}
	for i, entry := range entries {
		if err := rows.WantTranscripts(t.tx, p.row(entry.Row), ids[i], turn, p.batch.Now); err != nil {
			return err
		}
	}
	for _, post := range t.posts {
		if err := rows.WantTranscripts(t.tx, post, post.ID, turn, p.batch.Now); err != nil {
			return err
		}
	}
	return nil
}
