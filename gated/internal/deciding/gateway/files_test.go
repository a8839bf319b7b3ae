package gateway

import (
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// TestFiles_OfTheAnsweredPost_AreWantedAndWaitedFor has a photo that came along with "@bot what is this?", and one that
// was observed. Whom a group does not admit gets nothing downloaded by that.
func TestFiles_OfTheAnsweredPost_AreWantedAndWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		decision store.Decision
		want     bool
	}{
		"quoted":                     {store.Decision{Disposition: msg.Observed, Reason: msg.ReasonQuoted}, true},
		"observed":                   {store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: "main"}, true},
		"of another group":           {store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: "main/eng"}, false},
		"of a sender without access": {store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoAccess}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			photo := h.put("", func(m *msg.Message) {
				m.PendingFiles, m.Attachments = 1, []msg.Attachment{{Name: "a.jpg", Ref: "r"}}
			})
			h.write(func(tx *store.Tx) error { return tx.Decide(photo.ID, tt.decision, 5) })
			h.take("what is this?", verb(msg.VerbMention), func(m *msg.Message) { m.ReplyToID = photo.PlatformID })
			if got := h.row(photo.ID).FilesWanted; got != tt.want {
				t.Errorf("wanted %v, want %v", got, tt.want)
			}
			turn := h.agents.turns[0]
			if waits := turn.WaitsFor == msg.WaitsFiles; waits != tt.want {
				t.Errorf("the turn waits: %v", waits)
			}
			if !tt.want {
				return
			}
			ready := func() int {
				lanes := storetest.Must(rows.FilesReady(t.Context(), h.st.Reader))(t)
				return len(lanes)
			}
			if ready() != 0 {
				t.Error("the turn is ready before the file is there")
			}
			h.write(func(tx *store.Tx) error {
				return tx.PutFiles(photo.ID, []msg.Attachment{{Name: "a.jpg", Path: "media/a.jpg"}})
			})
			if ready() != 1 {
				t.Error("the turn is not ready")
			}
		})
	}
}

func TestFiles_OfATurn_AreWanted(t *testing.T) {
	h := parallel(t)
	pending := func(m *msg.Message) {
		m.Attachments, m.PendingFiles = []msg.Attachment{{Name: "a.jpg", Ref: "f1"}}, 1
	}
	m, prefixed, next := h.put("look", pending), h.put("@eng look", pending), h.put("and this")
	h.step()
	h.are("routed/route main", m, next)
	rows, err := h.st.DerivedFrom(t.Context(), prefixed.ID)
	if err != nil || len(rows) != 1 {
		t.Fatalf("derived %v, %v", rows, err)
	}
	for id, wanted := range map[int64]bool{m.ID: true, prefixed.ID: false, rows[0].ID: true, next.ID: false} {
		if row := h.row(id); row.FilesWanted != wanted {
			t.Errorf("row %d %q: wanted %v", id, row.Content, row.FilesWanted)
		}
	}
	h.routd.route(func(_ routeapi.Item, a *routeapi.Answer) {
		a.Action, a.Reason = routeapi.Observe, msg.ReasonRouteObserve
	})
	seen := h.take("seen", pending)
	if h.row(seen.ID).FilesWanted {
		t.Error("the file of an observed row is wanted")
	}
}

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
			h := parallel(t)
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
