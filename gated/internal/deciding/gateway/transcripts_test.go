package gateway

import (
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestTurn_AudioOfGroupWithTranscribe_WaitsForTranscript(t *testing.T) {
	t.Parallel()
	voice := func(m *msg.Message) {
		m.Attachments = []msg.Attachment{{Name: "v.ogg", MIME: "audio/ogg", Path: "media/1"}, {Name: "a.png", MIME: "image/png", Path: "media/2"}}
	}
	for name, c := range map[string]struct {
		config string
		change func(*msg.Message)
		want   int
	}{
		"voice":                  {`{"transcribe":"whisper {file}"}`, voice, 1},
		"still to be downloaded": {`{"transcribe":"whisper {file}"}`, func(m *msg.Message) { voice(m); m.PendingFiles = 1 }, 1},
		"no audio":               {`{"transcribe":"whisper {file}"}`, func(*msg.Message) {}, 0},
		"not switched on":        {`{}`, voice, 0},
		"what it cannot read":    {`{"transcribe":"whisper"}`, voice, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.configure("main", c.config)
			m := h.take("listen", c.change)
			wanted, err := rows.WantedTranscripts(t.Context(), h.st.Reader, 10)
			if err != nil || len(wanted) != c.want {
				t.Fatalf("wanted %+v, %v", wanted, err)
			}
			ready, err := rows.FilesReady(t.Context(), h.st.Reader)
			if err != nil || len(ready) != 0 {
				t.Errorf("turns that wait for nothing more: %v, %v", ready, err)
			}
			if c.want == 0 {
				return
			}
			if w := wanted[0]; w.MessageID != m.ID || w.N != 1 || w.Folder != "main" || !w.TurnWaits || w.File.Path != "media/1" {
				t.Errorf("wanted %+v", w)
			}
			h.write(func(tx *store.Tx) error {
				stored, err := rows.EndTranscript(tx, wanted[0].ID, "words", "", 1)
				if err == nil && !stored {
					t.Error("not stored")
				}
				return err
			})
			h.write(func(tx *store.Tx) error {
				stored, err := rows.EndTranscript(tx, wanted[0].ID, "other", "", 1)
				if stored {
					t.Error("stored twice")
				}
				return err
			})
			if m.PendingFiles > 0 {
				return
			}
			if ready, err = rows.FilesReady(t.Context(), h.st.Reader); err != nil || len(ready) != 1 {
				t.Errorf("turns that wait for nothing more: %v, %v", ready, err)
			}
		})
	}
}
