package webchat

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"arizuko/dashd/internal/rows"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

// step is one change that other processes make to the rows of a chat.
type step struct {
	what string
	pick int // which of the rows it is about
	how  msg.OutState
}

// writer writes the rows of one chat, as gated, adapters and users do concurrently.
type writer struct {
	*fixture
	t       testing.TB
	folder  string
	said    []int64 // inbound rows
	sending []int64 // outbound rows without an end
	shown   []int64 // rows that pages see in the end
}

func (w *writer) do(s step) {
	w.t.Helper()
	switch s.what {
	case "say":
		w.said = append(w.said, w.put(w.t, row{folder: w.folder, direction: "in"}))
		w.shown = append(w.shown, w.said[len(w.said)-1])
	case "answer":
		w.sending = append(w.sending, w.put(w.t, row{folder: w.folder, direction: "out", state: msg.OutQueued}))
	case "settle":
		w.settleOne(s)
	case "derive":
		if len(w.said) > 0 {
			from := w.said[s.pick%len(w.said)]
			w.put(w.t, row{folder: w.folder, direction: "in", derived: from})
			w.shown = append(w.shown, w.put(w.t, row{folder: w.folder, direction: "in", topic: "#a", derived: from}))
		}
	case "elsewhere":
		w.put(w.t, row{folder: "elsewhere", direction: "out", state: msg.OutQueued})
	}
	w.hub.Notify()
}

// settleOne ends one of the outbound rows, in any order.
func (w *writer) settleOne(s step) {
	w.t.Helper()
	if len(w.sending) == 0 {
		return
	}
	i := s.pick % len(w.sending)
	id := w.sending[i]
	w.settle(w.t, id, s.how)
	if s.how == msg.OutSending { // not a final state
		return
	}
	w.sending = slices.Delete(w.sending, i, i+1)
	if s.how == msg.OutSent || s.how == msg.OutAmbiguous {
		w.shown = append(w.shown, id)
	}
}

// theEnd is the text of the last row of a chat.
const theEnd = "the end"

// finish ends all rows and writes a last one.
func (w *writer) finish() {
	w.t.Helper()
	for len(w.sending) > 0 {
		w.do(step{"settle", len(w.sending) * 7 / 3, msg.OutSent})
	}
	w.shown = append(w.shown, w.put(w.t, row{folder: w.folder, direction: "in", content: theEnd}))
	w.hub.Notify()
}

func drawStep(t *rapid.T) step {
	states := []msg.OutState{msg.OutSent, msg.OutSent, msg.OutSent, msg.OutSending, msg.OutAmbiguous, msg.OutFailed, msg.OutCancelled}
	return step{
		what: rapid.SampledFrom([]string{"say", "answer", "answer", "settle", "settle", "derive", "elsewhere"}).Draw(t, "what"),
		pick: rapid.IntRange(0, 9).Draw(t, "pick"),
		how:  rapid.SampledFrom(states).Draw(t, "how"),
	}
}

// A page is opened while rows are written, reads the history, and follows the events over
// connections that break repeatedly.
func TestEvents_Reconnects_EachRowOnceInOrder(t *testing.T) {
	r := newFixture(t)
	chats := 0
	rapid.Check(t, func(rt *rapid.T) {
		chats++
		w := &writer{fixture: r, t: t, folder: fmt.Sprintf("chat%d", chats)}
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 0, 25).Draw(rt, "steps")
		opened := rapid.IntRange(0, len(steps)).Draw(rt, "opened")
		breaks := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 6).Draw(rt, "breaks")
		byHeader := rapid.Bool().Draw(rt, "by header")

		for _, s := range steps[:opened] {
			w.do(s)
		}
		var others sync.WaitGroup
		rendered := make(chan struct{}) // else there may be no event to wait for
		others.Go(func() {
			for _, s := range steps[opened:] {
				w.do(s)
			}
			<-rendered
			w.finish()
		})
		after, err := rows.WebEnd(rt.Context(), r.st.Reader, JID(w.folder)) // what the page is rendered with
		if err != nil {
			t.Fatal(err)
		}
		close(rendered)
		seen := get[history](t, r, "/"+w.folder+"/messages?limit=200").ids()
		events := r.read(t, w.folder, after, breaks, byHeader)
		others.Wait()
		if !slices.IsSorted(events) || len(slices.Compact(slices.Clone(events))) != len(events) {
			rt.Errorf("events after row %d: %v", after, events)
		}
		seen = append(seen, events...)
		slices.Sort(seen)
		slices.Sort(w.shown)
		if diff := cmp.Diff(w.shown, slices.Compact(seen)); diff != "" {
			rt.Errorf("opened after row %d, events %v (-written +seen):\n%s", after, events, diff)
		}
	})
}

// read follows a chat to its end. breaks are the numbers of messages after which connections break.
func (r *fixture) read(t testing.TB, folder string, last int64, breaks []int, byHeader bool) (ids []int64) {
	t.Helper()
	for i := 0; ; i++ {
		query, header := after(last), ""
		if byHeader {
			query, header = after(0), strconv.FormatInt(last, 10)
		}
		s := r.follow(t, folder, query, header)
		for range breaks[i%len(breaks)] {
			m := s.message()
			last = m.ID
			ids = append(ids, last)
			if m.Content == theEnd {
				s.close()
				return ids
			}
		}
		s.close()
	}
}
