package gateway

import (
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
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
			t.Parallel()
			h := newHarness(t)
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
				lanes, err := rows.FilesReady(t.Context(), h.st.Reader)
				if err != nil {
					t.Fatal(err)
				}
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
	t.Parallel()
	h := newHarness(t)
	pending := func(m *msg.Message) {
		m.Attachments, m.PendingFiles = []msg.Attachment{{Name: "a.jpg", Ref: "f1"}}, 1
	}
	m, prefixed, next := h.put("look", pending), h.put("@eng look", pending), h.put("and this")
	h.step()
	h.is(m, "routed/route main")
	h.is(next, "routed/route main")
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
