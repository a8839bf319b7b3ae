package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/deploy/stress/wire"
)

// ask asks a world for what happened behind a point, and returns the ids it is told.
func ask(t *testing.T, ctx context.Context, w *world, after string) (ids []int64) {
	t.Helper()
	answer := httptest.NewRecorder()
	w.handler().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/updates?after="+after, nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("behind %s: %d %s", after, answer.Code, answer.Body)
	}
	var updates []wire.Update
	if err := json.Unmarshal(answer.Body.Bytes(), &updates); err != nil {
		t.Fatal(err)
	}
	for _, u := range updates {
		ids = append(ids, u.ID)
	}
	return ids
}

// span lists the numbers of a range, both ends included.
func span(from, to int64) (all []int64) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// happenings has n things happen in a world.
func happenings(w *world, n int) {
	for i := range n {
		w.do(wire.Update{Chat: chat, Text: fmt.Sprint(i)})
	}
}

func TestTheWorldTellsOnlyWhatIsNotConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		happenings(w, 45)
		for i, step := range []struct {
			after string
			want  []int64
			quiet bool
		}{
			{"0", span(1, 20), false},
			{"0", span(1, 20), false}, // it died before it confirmed them
			{"20", span(21, 40), false},
			{"0", span(21, 40), false}, // it forgot what it had confirmed
			{"30", span(31, 45), false},
			{"45", nil, true},
			{"99", nil, true}, // there is no more to confirm
			{"0", nil, true},
		} {
			if diff := cmp.Diff(step.want, ask(t, t.Context(), w, step.after)); diff != "" {
				t.Errorf("step %d: %s", i, diff)
			}
			if w.quiet() != step.quiet {
				t.Errorf("step %d: quiet %t", i, w.quiet())
			}
		}
		if id := w.do(wire.Update{}); id != 46 || w.quiet() {
			t.Errorf("the next is %d, quiet %t", id, w.quiet())
		}
		if diff := cmp.Diff(span(46, 46), ask(t, t.Context(), w, "45")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTheWorldTellsThingsAsTheyHappened(t *testing.T) {
	w := newWorld()
	u := wire.Update{Chat: chat, Thread: "7", Sender: "telegram:7", Verb: "edit", Target: "3", Text: "m1"}
	w.do(u)
	answer := httptest.NewRecorder()
	w.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/updates?after=0", nil))
	const want = `[{"id":1,"chat":"telegram:101","thread":"7","sender":"telegram:7","verb":"edit","target":"3","text":"m1"}]`
	if got := strings.TrimSpace(answer.Body.String()); got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
}

func TestTheWorldHasItsAdapterWait(t *testing.T) {
	for name, tc := range map[string]struct {
		happens time.Duration // when something does, 0 for never
		leaves  time.Duration // when the adapter does, 0 for never
		want    []int64
		waits   time.Duration
	}{
		"nothing happens":         {0, 0, nil, askMost},
		"something happens":       {askMost / 4, 0, span(1, 1), askMost / 4},
		"the adapter goes":        {0, askMost / 2, nil, askMost / 2},
		"it happens too late":     {2 * askMost, 0, nil, askMost},
		"it happens as it leaves": {askMost / 4, askMost / 2, span(1, 1), askMost / 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.happens > 0 {
					time.AfterFunc(tc.happens, func() { happenings(w, 1) })
				}
				if tc.leaves > 0 {
					time.AfterFunc(tc.leaves, cancel)
				}
				began := time.Now()
				if diff := cmp.Diff(tc.want, ask(t, ctx, w, "0")); diff != "" {
					t.Error(diff)
				}
				if waited := time.Since(began); waited != tc.waits {
					t.Errorf("it waited for %s, want %s", waited, tc.waits)
				}
			})
		})
	}
}

func TestTheWorldRefusesNonsense(t *testing.T) {
	for _, tc := range []struct {
		method, target, body string
		want                 int
	}{
		{http.MethodGet, "/updates", "", http.StatusBadRequest},
		{http.MethodGet, "/updates?after=", "", http.StatusBadRequest},
		{http.MethodGet, "/updates?after=-1", "", http.StatusBadRequest},
		{http.MethodGet, "/updates?after=1.5", "", http.StatusBadRequest},
		{http.MethodGet, "/updates?after=9223372036854775808", "", http.StatusBadRequest},
		{http.MethodPost, "/updates?after=0", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/send", "", http.StatusBadRequest},
		{http.MethodPost, "/send", `{"row":"five"}`, http.StatusBadRequest},
		{http.MethodGet, "/send", "", http.StatusMethodNotAllowed},
		{http.MethodGet, "/", "", http.StatusNotFound},
	} {
		w := newWorld()
		happenings(w, 1)
		answer := httptest.NewRecorder()
		w.handler().ServeHTTP(answer, httptest.NewRequest(tc.method, tc.target, strings.NewReader(tc.body)))
		if answer.Code != tc.want || len(w.sent()) > 0 || w.quiet() {
			t.Errorf("%s %s %s: %d, want %d; sent %v, quiet %t", tc.method, tc.target, tc.body, answer.Code, tc.want, w.sent(), w.quiet())
		}
	}
}

func TestTheWorldRemembersWhatArrived(t *testing.T) {
	w := newWorld()
	sends := []wire.Send{
		{Row: 5, Part: 1, Chat: chat, Thread: "7", Text: "five", Marked: true},
		{Row: 4, Chat: chat, Text: "four"},
		{Row: 4, Chat: chat, Text: "four"},
	}
	for i, s := range sends {
		body, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		w.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/send", strings.NewReader(string(body))))
		if want := fmt.Sprintf(`{"id":"bot-%d"}`, i+1); answer.Code != http.StatusOK || strings.TrimSpace(answer.Body.String()) != want {
			t.Errorf("it answers %d %s, want %s", answer.Code, answer.Body, want)
		}
	}
	early := w.sent()
	if diff := cmp.Diff(sends, early); diff != "" {
		t.Error(diff)
	}
	longer := append(early, wire.Send{Row: 99})
	w.handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/send", strings.NewReader(`{"row":6}`)))
	if longer[3].Row != 99 || len(w.sent()) != 4 || w.sent()[3].Row != 6 {
		t.Errorf("what it gave out is what it keeps: %v, %v", longer, w.sent())
	}
}
