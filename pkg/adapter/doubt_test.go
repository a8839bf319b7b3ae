package adapter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// markingPlatform is a platform that can mark a part.
type markingPlatform struct{ *fake }

func (markingPlatform) Mark(part Part) Part { return marked(part.(string)) }

func marked(text string) string { return "(again) " + text }

// scriptedFinder is a platform that can look for a part; scripts give the results, and other parts are not found.
type scriptedFinder struct {
	*fake
	answers map[string][]func() (string, error)
	asked   []string
}

func (e *scriptedFinder) Find(_ context.Context, _ *msg.Message, part Part) (string, error) {
	text := part.(string)
	e.mu.Lock()
	e.asked = append(e.asked, text)
	answer := func() (string, error) { return "", nil }
	if script := e.answers[text]; len(script) > 0 {
		answer, e.answers[text] = script[0], script[1:]
	}
	e.mu.Unlock()
	return answer()
}

func finds(id string, err error) func() (string, error) {
	return func() (string, error) { return id, err }
}

func marking(o *Options) { o.Mark = true }

const remark = markedRecord

// crashing is a try to send in which the shell is killed.
func (r *fixture) crashing(err error) outcome {
	return func(context.Context) error {
		if cause := r.store.Close(); cause != nil {
			r.t.Error(cause)
		}
		return err
	}
}

// The second of three parts fails, and may have arrived.
func TestMark_AmbiguousPart_SendsMarkedCopies(t *testing.T) {
	again := marked("b")
	const ambiguous, transient, permanent = msg.Ambiguous, msg.Transient, msg.Permanent
	tests := []struct {
		name          string
		first, second []error // tries of the part, and of its marked copies
		want          string
		part          store.Delivery
		sends         []string
	}{
		{"arrives then", []error{errCause}, nil, "sent: sent sent sent",
			store.Delivery{Attempts: 1, PlatformID: idOf(again), Error: remark}, []string{"a", "b", again, "c"}},
		{"of that class", []error{failure(ambiguous, 0)}, nil, "sent: sent sent sent",
			store.Delivery{Attempts: 1, PlatformID: idOf(again), Error: remark}, []string{"a", "b", again, "c"}},
		{"arrives at the third copy", []error{errCause}, []error{errCause, errCause}, "sent: sent sent sent",
			store.Delivery{Attempts: 3, PlatformID: idOf(again), Error: remark}, []string{"a", "b", again, again, again, "c"}},
		{"no fifth copy", []error{errCause}, []error{errCause, errCause, errCause, errCause}, "failed: sent failed cancelled",
			store.Delivery{Attempts: 5, ErrorClass: ambiguous, Error: "HTTP 502"}, []string{"a", "b", again, again, again, again}},
		{"the doubt outlives failures", []error{errCause}, []error{failure(transient, 0), failure(msg.Rate, time.Minute), failure(msg.Auth, 0)},
			"sent: sent sent sent", store.Delivery{Attempts: 1, PlatformID: idOf(again), Error: remark}, []string{"a", "b", again, again, again, again, "c"}},
		{"which are no copies", []error{errCause}, []error{failure(transient, 0), failure(transient, 0), errCause}, "sent: sent sent sent",
			store.Delivery{Attempts: 2, PlatformID: idOf(again), Error: remark}, []string{"a", "b", again, again, again, again, "c"}},
		{"fails for good", []error{errCause}, []error{failure(permanent, 0)}, "failed: sent failed cancelled",
			store.Delivery{Attempts: 1, ErrorClass: permanent, Error: "permanent: HTTP 502"}, []string{"a", "b", again}},
		{"no doubt, no mark", []error{failure(transient, 0), failure(msg.Rate, 0)}, nil, "sent: sent sent sent",
			store.Delivery{Attempts: 1, PlatformID: idOf("b")}, []string{"a", "b", "b", "b", "c"}},
		{"ambiguous after a failure", []error{failure(transient, 0), errCause}, nil, "sent: sent sent sent",
			store.Delivery{Attempts: 2, PlatformID: idOf(again), Error: remark}, []string{"a", "b", "b", again, "c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				r.as = markingPlatform{r.platform}
				for _, err := range tt.first {
					r.platform.script("b", fails(err))
				}
				for _, err := range tt.second {
					r.platform.script(again, fails(err))
				}
				id := r.out("", "a|b|c")
				r.start(marking)
				pass(time.Hour)
				r.expect(id, tt.want)
				r.expectSent(tt.sends...)
				tt.part.MessageID, tt.part.Part = id, 1
				got := r.deliveries(id)[1]
				tt.part.State = got.State
				if diff := cmp.Diff(tt.part, got); diff != "" {
					t.Errorf("part (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// pencilLine is a platform with a connection that can mark a part.
type pencilLine struct {
	markingPlatform
	connected chan bool // the connection comes, and breaks
}

func (p *pencilLine) Listen(ctx context.Context, s *Shell) error {
	for {
		select {
		case up := <-p.connected:
			if !up {
				return errCause
			}
			s.Connected()
		case <-ctx.Done():
			return nil
		}
	}
}

func TestMark_Offline_WaitsForConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		back time.Duration // the connection is
		want time.Duration // the copy is sent
	}{
		"soon":      {back: time.Second, want: copyPauses()[0]},
		"late":      {back: time.Minute, want: time.Minute},
		"very late": {back: 20 * time.Hour, want: 20 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				p := &pencilLine{markingPlatform{r.platform}, make(chan bool)}
				r.as = p
				began, id := time.Now(), r.out("", "a")
				up := make(chan struct{}) // the call does not wait for the connection
				r.platform.script("a", func(context.Context) error {
					<-up
					p.connected <- false
					return errCause
				})
				r.start(marking)
				p.connected <- true
				close(up)
				pass(tt.back)
				r.expectSent("a")
				p.connected <- true
				pass(time.Hour)
				r.expect(id, "sent: sent")
				r.expectSent("a", marked("a"))
				if got := r.platform.calls[1].At.Sub(began); got < tt.want || got > tt.want+time.Second {
					t.Errorf("the copy was sent after %s, want about %s", got, tt.want)
				}
			})
		})
	}
}

// TestMark_RecordsDoubtBeforeSend looks at a part that may have arrived while it waits, and while its copy
// is on its way.
func TestMark_RecordsDoubtBeforeSend(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.as = markingPlatform{r.platform}
		id := r.out("", "a")
		expect := func(want store.Delivery) {
			want.MessageID = id
			if diff := cmp.Diff(want, r.deliveries(id)[0]); diff != "" {
				t.Errorf("part (-want +got):\n%s", diff)
			}
		}
		r.platform.script("a", fails(errors.New("lost near "+secret)))
		r.platform.script(marked("a"), func(context.Context) error {
			expect(store.Delivery{State: msg.OutSending, Attempts: 1, ErrorClass: msg.Ambiguous, Error: remark,
				NotBefore: time.Now().UnixMilli()})
			return failure(msg.Rate, time.Minute)
		})
		r.start(marking, redacting)
		synctest.Wait()
		expect(store.Delivery{State: msg.OutQueued, Attempts: 1, NotBefore: time.Now().Add(copyPauses()[0]).UnixMilli(),
			ErrorClass: msg.Ambiguous, Error: "lost near [redacted]"})
		pass(copyPauses()[0])
		expect(store.Delivery{State: msg.OutQueued, Attempts: 1, NotBefore: time.Now().Add(time.Minute).UnixMilli(),
			ErrorClass: msg.Ambiguous, Error: "rate: HTTP 502"})
		pass(time.Minute)
		expect(store.Delivery{State: msg.OutSent, Attempts: 1, PlatformID: idOf(marked("a")), Error: remark})
	})
}

// Each copy but the first is marked.
func TestMark_AfterEachCrash(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.as = markingPlatform{r.platform}
		again := marked("b")
		r.platform.script("b", r.crashing(nil))
		r.platform.script(again, r.crashing(errCause), r.crashing(nil))
		id, next := r.out("", "a|b|c"), r.out("", "next")
		for range 3 {
			stop := r.start(marking)
			pass(time.Second)
			r.crash(stop)
			r.expect(id, "sending: sent sending queued")
			r.expect(next, "queued:")
		}
		r.start(marking)
		pass(time.Second)
		r.expectSent("a", "b", again, again, again, "c", "next")
		r.expect(id, "sent: sent sent sent")
	})
}

// The platform is a Marker.
func TestMark_SwitchedOff_EndsAmbiguous(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.as = markingPlatform{r.platform}
		r.platform.script("b", fails(errCause))
		r.platform.script("c", r.crashing(nil))
		id := r.out("", "a|b|c|d")
		stop := r.start()
		pass(time.Second)
		r.crash(stop)
		r.start()
		pass(time.Hour)
		r.expectSent("a", "b", "c", "d")
		r.expect(id, "ambiguous: sent ambiguous ambiguous sent")
		if d := r.deliveries(id)[2]; d.ErrorClass != msg.Ambiguous || d.Error != "the daemon ended while this was being sent" {
			t.Errorf("part %+v", d)
		}
	})
}

// The second of three parts fails, and may have arrived.
func TestFind_AmbiguousPart(t *testing.T) {
	lost := finds("", errors.New("cannot see for "+secret))
	var blind []func() (string, error)
	for range maxAttempts {
		blind = append(blind, lost)
	}
	tests := []struct {
		name    string
		tries   []error
		answers []func() (string, error)
		want    string
		part    store.Delivery
		sends   []string
	}{
		{"found", []error{errCause}, []func() (string, error){finds("7", nil)}, "sent: sent sent sent",
			store.Delivery{Attempts: 1, PlatformID: "7"}, []string{"a", "b", "c"}},
		{"not found", []error{errCause}, nil, "sent: sent sent sent",
			store.Delivery{Attempts: 1, PlatformID: idOf("b")}, []string{"a", "b", "b", "c"}},
		{"found later", []error{errCause}, []func() (string, error){lost, lost, finds("7", nil)}, "sent: sent sent sent",
			store.Delivery{Attempts: 1, PlatformID: "7"}, []string{"a", "b", "c"}},
		{"never to be seen", []error{errCause}, blind, "ambiguous: sent ambiguous sent",
			store.Delivery{Attempts: 1, ErrorClass: msg.Ambiguous, Error: "cannot see for [redacted]"}, []string{"a", "b", "c"}},
		{"not found, and in doubt again", []error{errCause, errCause}, []func() (string, error){finds("", nil), finds("7", nil)},
			"sent: sent sent sent", store.Delivery{Attempts: 2, PlatformID: "7"}, []string{"a", "b", "b", "c"}},
		{"not found, and refused", []error{errCause, failure(msg.Permanent, 0)}, nil, "failed: sent failed cancelled",
			store.Delivery{Attempts: 1, ErrorClass: msg.Permanent, Error: "permanent: HTTP 502"}, []string{"a", "b", "b"}},
		{"panic", []error{errCause}, []func() (string, error){func() (string, error) { panic("blind") }, finds("7", nil)},
			"sent: sent sent sent", store.Delivery{Attempts: 1, PlatformID: "7"}, []string{"a", "b", "c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				r.as = &scriptedFinder{fake: r.platform, answers: map[string][]func() (string, error){"b": tt.answers}}
				for _, err := range tt.tries {
					r.platform.script("b", fails(err))
				}
				id := r.out("", "a|b|c")
				r.start(marking, redacting)
				pass(2 * time.Hour)
				r.expect(id, tt.want)
				r.expectSent(tt.sends...)
				got := r.deliveries(id)[1]
				tt.part.MessageID, tt.part.Part, tt.part.State = id, 1, got.State
				if diff := cmp.Diff(tt.part, got); diff != "" {
					t.Errorf("part (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// markingFinder is a platform that can mark a part, and could look for it if it were allowed to.
type markingFinder struct{ *scriptedFinder }

func (markingFinder) Mark(part Part) Part { return marked(part.(string)) }

// Each send of the part is ambiguous.
func TestFind_PermanentFailure_SendsMarkedCopy(t *testing.T) {
	forbidden := finds("", failure(msg.Permanent, 0))
	again := marked("a")
	for name, tt := range map[string]struct {
		copies []error
		want   string
		sends  []string
	}{
		"the copy arrives": {nil, "sent: sent", []string{"a", again}},
		"no fifth copy":    {[]error{errCause, errCause, errCause, errCause}, "failed: failed", []string{"a", again, again, again, again}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				answers := []func() (string, error){forbidden, forbidden, forbidden, forbidden}
				r.as = markingFinder{&scriptedFinder{fake: r.platform, answers: map[string][]func() (string, error){"a": answers}}}
				r.platform.script("a", fails(errCause))
				for _, err := range tt.copies {
					r.platform.script(again, fails(err))
				}
				id := r.out("", "a")
				r.start(marking)
				pass(time.Hour)
				r.expect(id, tt.want)
				r.expectSent(tt.sends...)
			})
		})
	}
}

func TestFind_RateLimited_Waits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		busy := finds("", failure(msg.Rate, 10*time.Minute))
		r.as = &scriptedFinder{fake: r.platform, answers: map[string][]func() (string, error){"a": {busy, finds("7", nil)}}}
		r.platform.script("a", fails(errCause))
		id := r.out("", "a")
		r.start()
		pass(9 * time.Minute)
		r.expect(id, "sending: queued")
		pass(5 * time.Minute)
		r.expect(id, "sent: sent")
	})
}

// The shell is killed before a part has arrived, after it, and during the search: the part arrives
// once.
func TestFind_AfterCrashes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		crash := r.crashing(nil)
		e := &scriptedFinder{fake: r.platform, answers: map[string][]func() (string, error){"b": {
			finds("", nil), // it had not arrived
			func() (string, error) { return "7", crash(context.Background()) }, // and has now, while the shell dies
			finds("7", nil),
		}}}
		r.as = e
		r.platform.script("b", r.crashing(errCause), crash)
		id, next := r.out("", "a|b|c"), r.out("", "next")
		for range 3 {
			stop := r.start()
			pass(time.Second)
			r.crash(stop)
			r.expect(id, "sending: sent sending queued")
		}
		r.start()
		pass(time.Second)
		r.expectSent("a", "b", "b", "c", "next")
		r.expect(id, "sent: sent sent sent")
		r.expect(next, "sent: sent")
		if got := r.deliveries(id)[1].PlatformID; got != "7" || len(e.asked) != 3 {
			t.Errorf("id %q, asked for %q", got, e.asked)
		}
	})
}

// panickingMarker is a platform whose Mark panics.
type panickingMarker struct{ *fake }

func (panickingMarker) Mark(Part) Part { panic("no mark near " + secret) }

func TestMark_Panics_EndsAmbiguous(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.as = panickingMarker{r.platform}
		r.platform.script("a", fails(errCause))
		id := r.out("", "a|b")
		r.start(marking, redacting)
		pass(time.Minute)
		r.expectSent("a", "b")
		r.expect(id, "ambiguous: ambiguous sent")
		if d := r.deliveries(id)[0]; d.Error != "panic while marking: no mark near [redacted]" {
			t.Errorf("part %+v", d)
		}
	})
}

// They are in contents and in errors.
func TestDeliver_RedactsSecrets(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var log strings.Builder
		r.platform.script("b", fails(errors.New(secret)))
		r.platform.script("c", fails(&Failure{Class: msg.Permanent, Err: errors.New("https://x/bot" + secret)}))
		r.platform.cut = func(m *msg.Message) ([]Part, error) {
			if m.Content == "uncut" {
				return nil, errors.New("no knife " + secret)
			}
			return pieces(m.Content), nil
		}
		said, doubt, failed, uncut := r.out("", "the key is "+secret), r.out("", "b"), r.out("", "c"), r.out("", "uncut")
		r.start(redacting, logged(&log))
		pass(time.Minute)
		r.expectSent("the key is [redacted]", "b", "c")
		for id, want := range map[int64]string{
			said: "", doubt: "[redacted]", failed: "permanent: https://x/bot[redacted]", uncut: "no knife [redacted]",
		} {
			if got := r.deliveries(id)[0].Error; got != want {
				t.Errorf("row %d: %q, want %q", id, got, want)
			}
		}
		if strings.Contains(log.String(), secret) {
			t.Errorf("logged %s", log.String())
		}
	})
}

func TestReceive_Threads_KeepKnownFields(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		shell := r.shell()
		for _, in := range []Inbound{
			{Threads: []msg.Thread{{ChatJID: room, ID: "7", Kind: "forum_topic", Title: "Old"}, {ChatJID: room, ID: "8", Author: "irc:ann"}}},
			{Threads: []msg.Thread{{ChatJID: room, ID: "7", Title: "New"}}, Messages: []*msg.Message{post("1", "hi")}},
		} {
			if err := shell.Receive(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		bad := post("2", "of no chat")
		bad.ChatJID = "nowhere"
		if err := shell.Receive(t.Context(), Inbound{
			Threads: []msg.Thread{{ChatJID: room, ID: "7", Title: "Never"}}, Messages: []*msg.Message{bad},
		}); !errors.Is(err, store.ErrRefused) {
			t.Errorf("error %v", err)
		}
		for _, want := range []msg.Thread{
			{ChatJID: room, ID: "7", Kind: "forum_topic", Title: "New"}, {ChatJID: room, ID: "8", Author: "irc:ann"},
		} {
			got, err := r.store.Thread(t.Context(), room, want.ID)
			if diff := cmp.Diff(&want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
	})
}
