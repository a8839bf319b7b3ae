package gateway

import (
	"errors"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// voice makes a row a voice note that is downloaded.
func voice(m *msg.Message) {
	m.Attachments = []msg.Attachment{{Name: "v.ogg", MIME: "audio/ogg", Path: "media/1"}}
}

// TestTakenBack_Sequences: several changes to the messages of one turn.
func TestTakenBack_Sequences(t *testing.T) {
	t.Parallel()
	edit := func(h *harness, m *msg.Message, text string, change ...func(*msg.Message)) *msg.Message {
		e := h.take(text, append([]func(*msg.Message){verb(msg.VerbEdit), on(m)}, change...)...)
		return e
	}
	remove := func(h *harness, m *msg.Message) *msg.Message { return edit(h, m, "", verb(msg.VerbDelete)) }
	requeue := func(h *harness, t *msg.Turn) {
		h.write(func(tx *store.Tx) error { return rows.RequeueTurn(tx, t.ID, rows.Requeue{}) })
	}
	fired := func(h *harness) *msg.Message {
		h.forMentions()
		m := h.take("look at this")
		edit(h, m, "@ari look at this", func(m *msg.Message) { m.Addressed = true })
		return m
	}
	for name, tt := range map[string]struct {
		do   func(h *harness)
		want [][]string // the texts of the turns that are open in the end
	}{
		"running, all deleted": {func(h *harness) {
			a, b := h.put("a", album), h.put("b", album)
			h.wait(2 * time.Second)
			h.begin()
			remove(h, a)
			remove(h, b)
		}, nil},
		"one deleted while running, the other when queued again": {func(h *harness) {
			a, b := h.put("a"), h.put("b")
			h.step()
			turn := h.begin()
			remove(h, a)
			requeue(h, turn)
			remove(h, b)
		}, nil},
		"mentions by an edit, edited while running, deleted": {func(h *harness) {
			m := fired(h)
			h.begin()
			edit(h, m, "@ari look at that")
			remove(h, m)
		}, nil},
		"mentions by an edit, edited while running and when queued again": {func(h *harness) {
			m := fired(h)
			turn := h.begin()
			edit(h, m, "@ari look at that")
			requeue(h, turn)
			edit(h, m, "@ari look at all")
		}, [][]string{{"@ari look at all"}}},
		"to another topic, then deleted": {func(h *harness) {
			m := h.take("#trip hi")
			edit(h, m, "#home hi")
			remove(h, m)
		}, nil},
		"deleted while running, then edited": {func(h *harness) {
			a := h.put("a")
			h.take("b")
			h.begin()
			remove(h, a)
			h.is(edit(h, a, "c"), "dropped/edit_superseded ")
		}, [][]string{{"a", "b"}}},
		"observed, deleted, then edited to mention": {func(h *harness) {
			h.forMentions()
			m := h.take("a")
			remove(h, m)
			edit(h, m, "@ari a", func(m *msg.Message) { m.Addressed = true })
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			tt.do(h)
			diff(t, "open", h.open(), tt.want)
		})
	}
}

// TestTakenBack_OtherFile: an edit puts another file in place of a message's, at the latest while its turn is queued.
func TestTakenBack_OtherFile(t *testing.T) {
	t.Parallel()
	file := func(name string) func(*msg.Message) {
		return func(m *msg.Message) {
			m.PendingFiles, m.Attachments = 1, []msg.Attachment{{Name: name, MIME: "audio/mpeg", Ref: name}}
		}
	}
	fetched := func(h *harness, m *msg.Message, name string) error {
		of := []msg.Attachment{{Ref: name}}
		return h.st.Write(h.t.Context(), func(tx *store.Tx) error {
			return adapterrows.FetchedFiles(tx, m.ID, of, []msg.Attachment{{Name: name, MIME: "audio/mpeg", Path: "media/" + name}})
		})
	}
	for name, tt := range map[string]func(h *harness) *msg.Message{
		"undecided": func(h *harness) *msg.Message {
			return h.put("hear", file("old"), func(m *msg.Message) { m.GroupKey = "album:1" })
		},
		"queued": func(h *harness) *msg.Message { return h.put("hear", file("old")) },
		"queued, fetched and transcribed": func(h *harness) *msg.Message {
			m := h.take("hear", file("old"))
			err := errors.Join(fetched(h, m, "old"), h.st.Write(t.Context(), func(tx *store.Tx) error {
				_, err := rows.EndTranscript(tx, 1, "old words", "", 1)
				return err
			}))
			if err != nil {
				h.t.Fatal(err)
			}
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			h.configure("main", `{"transcribe":"whisper {file}"}`)
			m := tt(h)
			h.take("beside it", func(m *msg.Message) { m.GroupKey = "album:1" })
			h.put("hear this", verb(msg.VerbEdit), on(m), file("new"))
			h.step()
			h.wait(2 * time.Second)
			diff(t, "open", h.open(), [][]string{{"hear this", "beside it"}})
			if err := fetched(h, m, "old"); !errors.Is(err, store.ErrStale) {
				t.Errorf("the old file: %v", err)
			}
			now := h.row(m.ID)
			if now.PendingFiles != 1 || !now.FilesWanted || now.Attachments[0].Name != "new" {
				t.Errorf("row %+v", now)
			}
			wanted, err := rows.WantedTranscripts(t.Context(), h.st.Reader, 10)
			if err != nil || len(wanted) != 1 || !wanted[0].TurnWaits || wanted[0].TurnID != now.TurnID {
				t.Errorf("wanted %+v, %v", wanted, err)
			}
			if err := fetched(h, m, "new"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTakenBack_VoiceNote_TranscriptFollows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		verb, text string
		wanted     int
		ready      int
	}{
		"deleted beside a text":      {msg.VerbDelete, "", 0, 1},
		"edited":                     {msg.VerbEdit, "hear this", 1, 0},
		"edited, into another group": {msg.VerbEdit, "@eng hear", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			for _, folder := range []string{"main", "main/eng"} {
				h.configure(folder, `{"transcribe":"whisper {file}"}`)
			}
			m := h.put("hear", voice)
			h.take("beside it")
			h.put(tt.text, verb(tt.verb), on(m))
			h.step()
			wanted, err := rows.WantedTranscripts(t.Context(), h.st.Reader, 10)
			if err != nil || len(wanted) != tt.wanted || tt.wanted > 0 && !wanted[0].TurnWaits {
				t.Errorf("wanted %+v, %v", wanted, err)
			}
			if tt.wanted > 0 && h.row(wanted[0].MessageID).TurnID != wanted[0].TurnID {
				t.Errorf("the transcript %+v is not of its message's turn", wanted[0])
			}
			if ready, err := rows.FilesReady(t.Context(), h.st.Reader); err != nil || len(ready) != tt.ready {
				t.Errorf("turns that wait for nothing more: %v, %v; want %d", ready, err, tt.ready)
			}
		})
	}
}
