package chatsim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter"
)

func TestShown_Previews_AreWhatTheyBecame(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	s := &shown{}
	s.made(Arrival{ID: "1", Chat: "c", Text: "plain", At: at(1)})
	s.made(Arrival{ID: "2", Chat: "c", Text: "⏳ " + adapter.PreviewStart, At: at(2)})
	s.previewMade(Arrival{ID: "3", Chat: "c", At: at(3)})
	s.made(Arrival{ID: "4", Chat: "c", Text: adapter.PreviewStart, At: at(4)})
	s.made(Arrival{ID: "5", Chat: "c", Text: "second", At: at(5)})
	s.changed("c", "1", "an edit of a message", at(6))
	s.changed("c", "2", "on", at(6))
	s.changed("c", "2", "the answer", at(7))
	s.changed("c", "2", "the answer", at(8)) // again after a crash
	s.changed("other", "4", "elsewhere", at(8))
	s.deleted("c", "3")
	want := []Arrival{
		{ID: "1", Chat: "c", Text: "plain", At: at(1)}, {ID: "5", Chat: "c", Text: "second", At: at(5)},
		{ID: "2", Chat: "c", Text: "the answer", At: at(7)},
	}
	if diff := cmp.Diff(want, s.arrivals()); diff != "" {
		t.Errorf("arrivals (-want +got):\n%s", diff)
	}
	if left := s.leftPreviews(); len(left) != 1 || left[0].ID != "4" {
		t.Errorf("left: %+v", left)
	}
}
