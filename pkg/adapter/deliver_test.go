package adapter

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

var errCause = errors.New("HTTP 502")

func failure(class msg.ErrorClass, after time.Duration) error {
	return &Failure{Class: class, After: after, Err: errCause}
}

func TestDeliver_SendsPartsInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		id := r.out("", "a|b|c")
		r.platform.script("b", func(context.Context) error {
			if got := r.states(id); got != "sending: sent sending queued" {
				t.Errorf("while b is sent: %s", got)
			}
			return nil
		})
		r.start()
		synctest.Wait()
		r.expectSent("a", "b", "c")
		var want []store.Delivery
		for part, text := range []string{"a", "b", "c"} {
			want = append(want, store.Delivery{MessageID: id, Part: part, State: msg.OutSent, PlatformID: idOf(text)})
		}
		if diff := cmp.Diff(want, r.deliveries(id)); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
		if m := r.row(id); m.OutState != msg.OutSent || m.PlatformID != idOf("a") {
			t.Errorf("row %+v", m)
		}
		if len(r.settled) != 1 || r.settled[0].ID != id || r.settled[0].OutState != msg.OutSent {
			t.Errorf("settled %+v", r.settled)
		}
	})
}

func TestDeliver_PlatformPanics_FailsOneRow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.cut = func(m *msg.Message) ([]Part, error) {
			if m.Content == "cannot be cut" {
				panic("no knife")
			}
			return pieces(m.Content), nil
		}
		r.platform.script("b", func(context.Context) error { panic("no road") })
		uncut, unsent, next := r.out("", "cannot be cut"), r.out("", "a|b|c"), r.out("", "next")
		r.start()
		pass(0)
		r.expect(uncut, "failed: failed")
		r.expect(unsent, "ambiguous: sent ambiguous sent")
		r.expect(next, "sent: sent")
		if got := r.deliveries(uncut)[0]; got.ErrorClass != msg.Permanent || got.Error != "panic while rendering: no knife" {
			t.Errorf("the row that cannot be cut: %+v", got)
		}
	})
}

func TestDeliver_ClockSetBack_DoesNotDelay(t *testing.T) {
	runInBubble(t, "while a part waits", func(t *testing.T, r *fixture) {
		var ahead atomic.Int64
		r.platform.script("a", fails(failure(msg.Rate, time.Minute)))
		row := r.out("", "a")
		r.start(func(o *Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		})
		pass(30 * time.Second)
		ahead.Store(int64(-3 * time.Hour))
		pass(30 * time.Second)
		r.expect(row, "sent: sent")
	})
	runInBubble(t, "while the daemon is down", func(t *testing.T, r *fixture) {
		row := r.begun("a", msg.OutQueued)
		r.write(func(tx *store.Tx) error {
			later := time.Now().Add(30 * time.Hour).UnixMilli()
			return tx.PutDelivery(store.Delivery{MessageID: row, State: msg.OutQueued, Attempts: 1, NotBefore: later}, 1)
		})
		r.start()
		pass(maxWait)
		r.expect(row, "sent: sent")
	})
}

// The shell is stopped while a part waits.
func TestDeliver_ShellRestarts_KeepsBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.script("a", fails(failure(msg.Rate, time.Minute)))
		id := r.out("", "a")
		stop := r.start()
		pass(10 * time.Second)
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 0 {
			t.Errorf("the stop took %v", took)
		}
		r.start()
		pass(49 * time.Second)
		r.expectSent("a")
		pass(time.Second)
		r.expectSent("a", "a")
		r.expect(id, "sent: sent")
	})
}

// A shell starts on what a killed one has left.
func TestDeliver_AfterCrash(t *testing.T) {
	const queued, sending, sent, ambiguous, failed, cancelled = msg.OutQueued, msg.OutSending, msg.OutSent,
		msg.OutAmbiguous, msg.OutFailed, msg.OutCancelled
	type states = []msg.OutState
	tests := []struct {
		name       string
		content    string
		parts      states
		repeatable bool
		want       string
		sends      []string
	}{
		{"the only part", "a", states{sending}, false, "ambiguous: ambiguous", nil},
		{"the first part", "a|b|c", states{sending, queued, queued}, false, "ambiguous: ambiguous sent sent", []string{"b", "c"}},
		{"a part in the middle", "a|b|c", states{sent, sending, queued}, false, "ambiguous: sent ambiguous sent", []string{"c"}},
		{"the last part", "a|b", states{sent, sending}, false, "ambiguous: sent ambiguous", nil},
		{"between two parts", "a|b", states{sent, queued}, false, "sent: sent sent", []string{"b"}},
		{"before the row was settled", "a|b", states{sent, sent}, false, "sent: sent sent", nil},
		{"twice", "a|b|c", states{ambiguous, sending, queued}, false, "ambiguous: ambiguous ambiguous sent", []string{"c"}},
		{"a failed part", "a|b", states{failed, cancelled}, false, "failed: failed cancelled", nil},
		{"failed after an ambiguous part", "a|b", states{ambiguous, failed}, false, "failed: ambiguous failed", nil},
		{"ambiguous", "a|b", states{ambiguous, sent}, false, "ambiguous: ambiguous sent", nil},
		{"no parts", "a|b", nil, false, "ambiguous:", nil},

		{"repeatable: the only part", "a", states{sending}, true, "sent: sent", []string{"a"}},
		{"repeatable: in the middle", "a|b|c", states{sent, sending, queued}, true, "sent: sent sent sent", []string{"b", "c"}},
		{"repeatable: between two parts", "a|b", states{sent, queued}, true, "sent: sent sent", []string{"b"}},
		{"repeatable: no parts", "a|b", nil, true, "ambiguous:", nil},

		{"cut into more", "a|b|c", states{sent, queued}, false, "failed: sent failed", nil},
		{"cut into fewer", "a", states{sent, queued, queued}, false, "failed: sent failed cancelled", nil},
		{"cut into fewer, on its way", "a", states{sent, sending, queued}, false, "failed: sent ambiguous failed", nil},
		{"cut into fewer, the last on its way", "a", states{sent, sending}, false, "ambiguous: sent ambiguous", nil},
		{"cut into fewer, but all are sent", "a", states{sent, sent}, false, "sent: sent sent", nil},
		{"repeatable: cut into fewer", "a", states{sending, queued}, true, "failed: failed cancelled", nil},
	}
	for _, tt := range tests {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			id := r.begun(tt.content, tt.parts...)
			if tt.parts == nil {
				r.exec("DELETE FROM deliveries")
			}
			next := r.out("", "next")
			r.platform.repeats = tt.repeatable
			r.start()
			synctest.Wait() // and no time passes
			r.expect(id, tt.want)
			r.expect(next, "sent: sent")
			r.expectSent(append(tt.sends, "next")...)
			if len(r.settled) != 2 || r.settled[0].ID != id || string(r.settled[0].OutState)+":" != tt.want[:len(r.settled[0].OutState)+1] {
				t.Errorf("settled %+v", r.settled)
			}
		})
	}
}

// exec runs a statement on the file on a connection of its own.
func (r *fixture) exec(query string) {
	r.t.Helper()
	db, err := sql.Open("sqlite3", r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		r.t.Fatal(err)
	}
}

func TestDeliver_CutFails_FailsRow(t *testing.T) {
	errCut := errors.New("no such emoji")
	tests := []struct {
		name  string
		parts []Part
		err   error
		want  string
		why   string
	}{
		{"no parts and an error", nil, errCut, "failed: failed", "no such emoji"},
		{"parts and an error", []Part{"a", "b"}, errCut, "failed: failed cancelled", "no such emoji"},
		{"no parts", nil, nil, "failed: failed", "the row renders as 0 parts, but was claimed with 1"},
	}
	for _, tt := range tests {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			id, next := r.out("", "bad"), r.out("", "good")
			r.platform.cut = func(m *msg.Message) ([]Part, error) {
				if m.Content == "bad" {
					return tt.parts, tt.err
				}
				return pieces(m.Content), nil
			}
			r.start()
			synctest.Wait() // and no time passes
			r.expect(id, tt.want)
			r.expect(next, "sent: sent")
			r.expectSent("good")
			if d := r.deliveries(id)[0]; d.ErrorClass != msg.Permanent || d.Error != tt.why {
				t.Errorf("part %+v", d)
			}
			if len(r.settled) != 2 || r.settled[0].ID != id || r.settled[0].OutState != msg.OutFailed {
				t.Errorf("settled %+v", r.settled)
			}
		})
	}
}

func TestDeliver_CountsParts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.script("a", fails(failure(msg.Rate, 0)), fails(errCause))
		r.platform.script("c", fails(failure(msg.Permanent, 0)))
		r.out("", "a|b|c|d")
		r.start()
		pass(firstPause)
		got := r.counted("arizuko_outbox_parts_total")
		want := map[string]float64{
			"rate irc queued": 1, "ambiguous irc ambiguous": 1, "none irc sent": 1, "permanent irc failed": 1, "none irc cancelled": 1,
			"transient irc failed": 0, // seen before the first, so that increase() counts that
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := r.counted("arizuko_delivery_seconds"); got["irc failed"] != 1 || got["irc sent"] != 0 {
			t.Errorf("deliveries %v", got)
		}
	})
}

// counted returns the values of a counter or gauge, or the counts of a histogram, by the values of its labels.
func (r *fixture) counted(name string) map[string]float64 {
	r.t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, label := range m.GetLabel() {
				values = append(values, label.GetValue())
			}
			if f.GetName() == name {
				counts[strings.Join(values, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return counts
}

func TestFailure_UnwrapsCause(t *testing.T) {
	if err := failure(msg.Rate, 0); !errors.Is(err, errCause) || err.Error() != "rate: HTTP 502" {
		t.Errorf("%v", err)
	}
}
