package webchat

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestEvents_LastEventID_Begin(t *testing.T) {
	r := newFixture(t)
	first, second := r.said(t, "", "1"), r.answered(t, "2", msg.OutSent)
	for _, test := range []struct {
		after, seen string
		want        []int64 // before the row that is written then
	}{
		{"", "", nil},
		{"?after=", "", nil},
		{"?after=0", "", []int64{first, second}},
		{after(first), "", []int64{second}},
		{after(second), "", nil},
		{"", "0", []int64{first, second}},
		{after(second), strconv.FormatInt(first, 10), []int64{second}},
		{after(0), strconv.FormatInt(second, 10), nil},
		{"?after=x", strconv.FormatInt(first, 10), []int64{second}},
	} {
		s := r.follow(t, "main", test.after, test.seen)
		var got []int64
		for range test.want {
			got = append(got, s.message().ID)
		}
		s.want("typing", `{"topics":[]}`) // the first look is over
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", test.after, test.seen, diff)
		}
		s.close()
	}
	for query, seen := range map[string]string{"": "99", "?after=99": ""} {
		s := r.follow(t, "main", query, seen)
		if e := s.next(); e.name != "restored" || e.id != second {
			t.Errorf("%s %s, after a restore: %+v", query, seen, e)
		}
		if second = r.said(t, "", "3"); s.message().ID != second {
			t.Error("the next row is missing")
		}
		s.close()
	}
	for _, after := range []string{"?after=x", "?after=-1", "?after=1.5", "?after=99999999999999999999"} {
		if status, answer := r.ask(t, "GET", "/main/events"+after, ""); status != 400 || !strings.Contains(answer, "bad_request") {
			t.Errorf("%s: %d %s", after, status, answer)
		}
	}
}

func TestEvents_OneChat_InOrder(t *testing.T) {
	r := newFixture(t)
	s := r.follow(t, "main", "", "")
	defer s.close()
	s.want("typing", `{"topics":[]}`)
	id := r.post(t, map[string]string{"text": "mine", "topic": "#a"}) // its commit stirs
	if m := s.message(); m.ID != id || m.Content != "mine" || m.Topic != "#a" || m.Direction != "in" {
		t.Errorf("one's own: %+v", m)
	}
	r.put(t, row{folder: "other", direction: "in", content: "elsewhere"})
	lost := r.answered(t, "lost", msg.OutQueued)
	r.answered(t, "answer", msg.OutSent)
	r.hub.Notify()
	r.settle(t, lost, msg.OutFailed)
	r.hub.Notify()
	if m := s.message(); m.Content != "answer" || m.Direction != "out" || *m.HTML != "<p>answer</p>\n" {
		t.Errorf("the next: %+v", m)
	}
}

func TestEvents_LongAbsence_AllRows(t *testing.T) {
	r := newFixture(t)
	r.sql(t, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 2*?1+7)
		INSERT INTO messages (chat_jid, direction, timestamp, received_at) SELECT 'web:main', 'in', 0, 0 FROM n`, readAtOnce)
	s := r.follow(t, "main", after(0), "")
	defer s.close()
	for want := range int64(2*readAtOnce + 7) {
		if got := s.message().ID; got != want+1 {
			t.Fatalf("row %d, want %d", got, want+1)
		}
	}
}

// work queues a turn of a place in a separate topic, and returns functions that start it and end
// it.
func work(t *testing.T, r *fixture, place, topic string) (begin, end func()) {
	t.Helper()
	run, turn := queued(t, r, place, topic)
	begin = func() {
		t.Helper()
		r.write(t, func(tx *store.Tx) error { return gatedtest.StartRun(tx, run, turn) })
	}
	end = func() {
		t.Helper()
		r.write(t, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, turn, msg.ReasonRoute, 1) })
	}
	return begin, end
}

func TestEvents_Typing(t *testing.T) {
	r := newFixture(t)
	beginDeploy, endDeploy := work(t, r, "#deploy", "#deploy")
	beginDefault, endDefault := work(t, r, "", "")
	beginAgain, endAgain := work(t, r, "#deploy", "#pinned")
	s := r.follow(t, "main", "", "")
	defer s.close()
	s.want("typing", `{"topics":[]}`) // the turns wait in the queue
	beginDeploy()
	s.want("typing", `{"topics":["#deploy"]}`)
	beginDefault()
	s.want("typing", `{"topics":["","#deploy"]}`)
	beginAgain() // a second one there
	other := r.follow(t, "main", "", "")
	other.want("typing", `{"topics":["","#deploy"]}`)
	other.close()
	endDeploy()
	endDefault()
	s.want("typing", `{"topics":["#deploy"]}`)
	r.answered(t, "done", msg.OutSent)
	endAgain()
	if m := s.message(); m.Content != "done" {
		t.Errorf("message %+v", m)
	}
	s.want("typing", `{"topics":[]}`)
	elsewhere := r.follow(t, "other", "", "")
	defer elsewhere.close()
	elsewhere.want("typing", `{"topics":[]}`)
}

func TestEvents_Typing_PipedTurn(t *testing.T) {
	r := newFixture(t)
	begin, _ := work(t, r, "#a", "#a")
	begin()
	piped := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "web:main", Topic: "#a", Place: "#b", TriggerMessageID: r.said(t, "#b", "go")}
	if err := r.st.Write(t.Context(), func(tx *store.Tx) error {
		_, err := gatedtest.PutTurn(tx, piped, 5)
		return errors.Join(err, gatedtest.TakeTurn(tx, piped.ID, 1, 1)) // by the run that works, whose agent folds
	}); err != nil {
		t.Fatal(err)
	}
	s := r.follow(t, "main", "", "")
	defer s.close()
	s.want("typing", `{"topics":["#a","#b"]}`)
}
