package adapter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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

// The second of three parts fails.
func TestDeliver_PartFails_ByClass(t *testing.T) {
	wrapped := fmt.Errorf("post the message: %w", failure(msg.Permanent, 0))
	tests := []struct {
		name  string
		tries []error // those of the second part that fail
		want  string
		part  store.Delivery // the second one at the end
		took  time.Duration
	}{
		{"permanent", []error{failure(msg.Permanent, 0)}, "failed: sent failed cancelled",
			store.Delivery{ErrorClass: msg.Permanent, Error: "permanent: HTTP 502"}, 0},
		{"wrapped", []error{wrapped}, "failed: sent failed cancelled",
			store.Delivery{ErrorClass: msg.Permanent, Error: "post the message: permanent: HTTP 502"}, 0},
		{"ambiguous", []error{failure(msg.Ambiguous, 0)}, "ambiguous: sent ambiguous sent",
			store.Delivery{ErrorClass: msg.Ambiguous, Error: "ambiguous: HTTP 502"}, 0},
		{"of no class", []error{errCause}, "ambiguous: sent ambiguous sent",
			store.Delivery{ErrorClass: msg.Ambiguous, Error: "HTTP 502"}, 0},
		{"empty", []error{&Failure{}}, "ambiguous: sent ambiguous sent",
			store.Delivery{ErrorClass: msg.Ambiguous, Error: ": <nil>"}, 0},
		{"of an unknown class", []error{failure("strange", 0)}, "ambiguous: sent ambiguous sent",
			store.Delivery{ErrorClass: msg.Ambiguous, Error: "strange: HTTP 502"}, 0},
		{"transient", []error{failure(msg.Transient, 0), failure(msg.Transient, time.Hour)}, "sent: sent sent sent",
			store.Delivery{Attempts: 2}, 3 * time.Second},
		{"rate", []error{failure(msg.Rate, time.Minute), failure(msg.Rate, 0), failure(msg.Rate, -time.Hour)},
			"sent: sent sent sent", store.Delivery{}, time.Minute + 2*firstPause},
		{"rate without a cause", []error{&Failure{Class: msg.Rate, After: 1500 * time.Millisecond}}, "sent: sent sent sent",
			store.Delivery{}, 1500 * time.Millisecond},
		{"rate for longer than patience with transient ones", slices.Repeat([]error{failure(msg.Rate, time.Minute)}, 2*maxAttempts),
			"sent: sent sent sent", store.Delivery{}, 2 * maxAttempts * time.Minute},
		{"auth", slices.Repeat([]error{failure(msg.Auth, 0)}, 2*maxAttempts), "sent: sent sent sent",
			store.Delivery{}, 2 * maxAttempts * authPause},
		{"auth, then permanent", []error{failure(msg.Auth, 0), failure(msg.Permanent, 0)}, "failed: sent failed cancelled",
			store.Delivery{ErrorClass: msg.Permanent, Error: "permanent: HTTP 502"}, authPause},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				for _, err := range tt.tries {
					r.platform.script("b", fails(err))
				}
				first, next := r.out("", "a|b|c"), r.out("", "next")
				begin := time.Now()
				r.start()
				pass(tt.took)
				r.expect(first, tt.want)
				r.expect(next, "sent: sent")
				got := r.deliveries(first)[1]
				tt.part.MessageID, tt.part.Part, tt.part.State = first, 1, got.State
				if got.State == msg.OutSent {
					tt.part.PlatformID = idOf("b")
				}
				if diff := cmp.Diff(tt.part, got); diff != "" {
					t.Errorf("part (-want +got):\n%s", diff)
				}
				calls := r.platform.calls
				if last := calls[len(calls)-1]; last.Text != "next" || last.At.Sub(begin) != tt.took {
					t.Errorf("%s sent after %v, want %v", last.Text, last.At.Sub(begin), tt.took)
				}
				if len(r.settled) != 2 || r.settled[0].ID != first || r.settled[0].OutState != r.row(first).OutState {
					t.Errorf("settled %+v", r.settled)
				}
			})
		})
	}
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
	t.Run("while a part waits", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *fixture) {
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
	})
	t.Run("while the daemon is down", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *fixture) {
			row := r.begun("a", msg.OutQueued)
			r.write(func(tx *store.Tx) error {
				later := time.Now().Add(30 * time.Hour).UnixMilli()
				return tx.PutDelivery(store.Delivery{MessageID: row, State: msg.OutQueued, Attempts: 1, NotBefore: later}, 1)
			})
			r.start()
			pass(maxWait)
			r.expect(row, "sent: sent")
		})
	})
}

func TestDeliver_WaitingPart_State(t *testing.T) {
	for _, tt := range []struct {
		class    msg.ErrorClass
		attempts int
		wait     time.Duration
	}{
		{msg.Transient, 1, firstPause}, {msg.Rate, 0, time.Hour}, {msg.Auth, 0, authPause},
	} {
		t.Run(string(tt.class), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				r.platform.script("a", fails(failure(tt.class, time.Hour)))
				id := r.out("", "a|b")
				r.start()
				synctest.Wait()
				want := []store.Delivery{
					{MessageID: id, State: msg.OutQueued, Attempts: tt.attempts, NotBefore: time.Now().Add(tt.wait).UnixMilli(),
						ErrorClass: tt.class, Error: string(tt.class) + ": HTTP 502"},
					{MessageID: id, Part: 1, State: msg.OutQueued},
				}
				if diff := cmp.Diff(want, r.deliveries(id)); diff != "" {
					t.Errorf("deliveries (-want +got):\n%s", diff)
				}
				if m := r.row(id); m.OutState != msg.OutSending || len(r.settled) > 0 {
					t.Errorf("row %s, settled %v", m.OutState, r.settled)
				}
			})
		})
	}
}

func TestDeliver_TransientFailures_EndAfterMaxAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.script("a", slices.Repeat([]outcome{fails(failure(msg.Transient, 0))}, 2*maxAttempts)...)
		id := r.out("", "a|b")
		r.start()
		pass(24 * time.Hour)
		r.expect(id, "failed: failed cancelled")
		var pauses []time.Duration
		for i, c := range r.platform.calls[1:] {
			pauses = append(pauses, c.At.Sub(r.platform.calls[i].At)/time.Second)
		}
		want := append([]time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256}, slices.Repeat([]time.Duration{300}, maxAttempts-10)...)
		if !slices.Equal(pauses, want) {
			t.Errorf("seconds between the tries: %d, want %d", pauses, want)
		}
		if d := r.deliveries(id)[0]; d.Attempts != maxAttempts || d.NotBefore != 0 {
			t.Errorf("part %+v", d)
		}
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
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
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
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
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

func TestDeliver_Remark_IsRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.script("a", fails(fmt.Errorf("sending: %w", &Remark{"without its colours, near " + secret})))
		id := r.out("", "a|b")
		r.start(redacting)
		pass(time.Minute)
		r.expect(id, "sent: sent sent")
		r.expectSent("a", "b")
		if got := r.deliveries(id)[0]; got.Error != "without its colours, near [redacted]" || got.ErrorClass != "" {
			t.Errorf("the record says %+v", got)
		}
	})
}
