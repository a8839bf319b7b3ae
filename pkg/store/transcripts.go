package store

import (
	"context"
	"fmt"

	"arizuko/pkg/msg"
)

// FillTranscripts adds their transcripts to the audio files of messages.
func (r Reader) FillTranscripts(ctx context.Context, rows []*msg.Message) error {
	for _, m := range rows {
		if !m.HasAudio() {
			continue
		}
		err := r.Each(ctx, func(scan Scan) (bool, error) {
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
