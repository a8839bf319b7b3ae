package adapter

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/adapter/rows"

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

func marking(o *Options) { o.Resend = ResendMarked }

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

// The second of three parts fails in some tries. The platform can look for it, or a copy of it can be marked.
func TestDeliver_SecondPartFails(t *testing.T) {
	const ambiguous, permanent, sent, failed = msg.Ambiguous, msg.Permanent, msg.OutSent, msg.OutFailed
	type finding = func() (string, error)
	type part = store.Delivery
	transient, rate, auth := failure(msg.Transient, 0), failure(msg.Rate, time.Minute), failure(msg.Auth, 0)
	lost, nothing, found := finds("", errors.New("cannot see for "+secret)), finds("", nil), finds("7", nil)
	forbidden, busy := finds("", failure(permanent, 0)), finds("", failure(msg.Rate, 10*time.Minute))
	again, copies := marked("b"), copyPauses()
	for name, tt := range map[string]struct {
		power   string
		tries   []error   // of the part
		copies  []error   // of its marked copies
		answers []finding // of searches
		want    part
		sends   string        // of the part, and of copies
		took    time.Duration // until the next row is sent; 0 to leave that open
	}{
		"permanent": {powerless, []error{failure(permanent, 0)}, nil, nil, part{State: failed, ErrorClass: permanent, Error: "permanent: HTTP 502"}, "b", 0},
		"ambiguous": {powerless, []error{failure(ambiguous, 0)}, nil, nil,
			part{State: msg.OutAmbiguous, ErrorClass: ambiguous, Error: "ambiguous: HTTP 502"}, "b", 0},
		"transient": {powerless, []error{transient, failure(msg.Transient, time.Hour)}, nil, nil, part{State: sent, Attempts: 2}, "b b b", 3 * time.Second},
		"rate":      {powerless, []error{rate, failure(msg.Rate, -time.Hour)}, nil, nil, part{State: sent}, "b b b", time.Minute + firstPause},
		"rate without a cause": {powerless, []error{&Failure{Class: msg.Rate, After: 1500 * time.Millisecond}}, nil, nil,
			part{State: sent}, "b b", 1500 * time.Millisecond},
		"rate for long": {powerless, slices.Repeat([]error{rate}, 2*maxAttempts), nil, nil, part{State: sent},
			strings.Repeat("b ", 2*maxAttempts) + "b", 2 * maxAttempts * time.Minute},
		"auth, then permanent": {powerless, []error{auth, failure(permanent, 0)}, nil, nil,
			part{State: failed, ErrorClass: permanent, Error: "permanent: HTTP 502"}, "b b", authPause},

		"mark: arrives": {remarks, []error{errCause}, nil, nil, part{State: sent, Attempts: 1, Error: remark}, "b *", copies[0]},
		"mark: third copy arrives": {remarks, []error{errCause}, []error{errCause, errCause}, nil,
			part{State: sent, Attempts: 3, Error: remark}, "b * * *", copies[0] + copies[1] + copies[2]},
		"mark: no fifth copy": {remarks, []error{errCause}, slices.Repeat([]error{errCause}, 4), nil,
			part{State: failed, Attempts: 5, ErrorClass: ambiguous, Error: "HTTP 502"}, "b * * * *", 0},
		"mark: doubt outlives failures": {remarks, []error{errCause}, []error{transient, rate, auth}, nil,
			part{State: sent, Attempts: 1, Error: remark}, "b * * * *", 0},
		"mark: failures are no copies": {remarks, []error{errCause}, []error{transient, transient, errCause}, nil,
			part{State: sent, Attempts: 2, Error: remark}, "b * * * *", 0},
		"mark: fails for good": {remarks, []error{errCause}, []error{failure(permanent, 0)}, nil,
			part{State: failed, Attempts: 1, ErrorClass: permanent, Error: "permanent: HTTP 502"}, "b *", copies[0]},
		"mark: no doubt, no mark":     {remarks, []error{transient, failure(msg.Rate, 0)}, nil, nil, part{State: sent, Attempts: 1}, "b b b", 2 * time.Second},
		"mark: doubt after a failure": {remarks, []error{transient, errCause}, nil, nil, part{State: sent, Attempts: 2, Error: remark}, "b b *", 0},

		"find: found":       {looksForIt, []error{errCause}, nil, []finding{found}, part{State: sent, Attempts: 1, PlatformID: "7"}, "b", firstPause},
		"find: not found":   {looksForIt, []error{errCause}, nil, []finding{nothing}, part{State: sent, Attempts: 1}, "b b", firstPause},
		"find: found later": {looksForIt, []error{errCause}, nil, []finding{lost, lost, found}, part{State: sent, Attempts: 1, PlatformID: "7"}, "b", 4 * time.Second},
		"find: busy":        {looksForIt, []error{errCause}, nil, []finding{busy, found}, part{State: sent, Attempts: 1, PlatformID: "7"}, "b", firstPause + 10*time.Minute},
		"find: never seen": {looksForIt, []error{errCause}, nil, slices.Repeat([]finding{lost}, maxAttempts),
			part{State: msg.OutAmbiguous, Attempts: 1, ErrorClass: ambiguous, Error: "cannot see for [redacted]"}, "b", 0},
		"find: in doubt again": {looksForIt, []error{errCause, errCause}, nil, []finding{nothing, found},
			part{State: sent, Attempts: 2, PlatformID: "7"}, "b b", 0},
		"find: not found, and refused": {looksForIt, []error{errCause, failure(permanent, 0)}, nil, []finding{nothing},
			part{State: failed, Attempts: 1, ErrorClass: permanent, Error: "permanent: HTTP 502"}, "b b", firstPause},
		"find: panic": {looksForIt, []error{errCause}, nil, []finding{func() (string, error) { panic("blind") }, found},
			part{State: sent, Attempts: 1, PlatformID: "7"}, "b", 0},

		"forbidden to find: the copy arrives": {"both", []error{errCause}, nil, []finding{forbidden}, part{State: sent, Attempts: 1, Error: remark}, "b *", copies[0]},
		"forbidden to find: no fifth copy": {"both", []error{errCause}, slices.Repeat([]error{errCause}, 4), slices.Repeat([]finding{forbidden}, 4),
			part{State: failed, Attempts: 5, ErrorClass: ambiguous, Error: "HTTP 502"}, "b * * * *", 0},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			finder := &scriptedFinder{fake: r.platform, answers: map[string][]func() (string, error){"b": tt.answers}}
			r.as = map[string]Platform{
				powerless: r.platform, remarks: markingPlatform{r.platform}, looksForIt: finder, "both": markingFinder{finder},
			}[tt.power]
			for _, err := range tt.tries {
				r.platform.script("b", fails(err))
			}
			for _, err := range tt.copies {
				r.platform.script(again, fails(err))
			}
			began, id, next := time.Now(), r.out("", "a|b|c"), r.out("", "next")
			r.start(marking, redacting)
			pass(3 * time.Hour)

			ends := map[msg.OutState]string{sent: "sent sent sent", failed: "sent failed cancelled", msg.OutAmbiguous: "sent ambiguous sent"}
			r.expect(id, string(tt.want.State)+": "+ends[tt.want.State])
			r.expect(next, "sent: sent")
			sends := append([]string{"a"}, strings.Fields(strings.ReplaceAll(tt.sends, "*", "again"))...)
			if tt.want.State != failed {
				sends = append(sends, "c")
			}
			for i := range sends {
				if sends[i] == "again" {
					sends[i] = again
				}
			}
			r.expectSent(append(sends, "next")...)
			tt.want.MessageID, tt.want.Part = id, 1
			if last := sends[len(sends)-2]; tt.want.State == sent && tt.want.PlatformID == "" {
				tt.want.PlatformID = idOf(last)
			}
			if diff := cmp.Diff(tt.want, r.deliveries(id)[1]); diff != "" {
				t.Errorf("part (-want +got):\n%s", diff)
			}
			calls := r.platform.calls
			if took := calls[len(calls)-1].At.Sub(began); tt.took > 0 && took != tt.took {
				t.Errorf("the next row was sent after %v, want %v", took, tt.took)
			}
			if len(r.settled) != 2 || r.settled[0].ID != id || r.settled[0].OutState != tt.want.State {
				t.Errorf("settled %+v", r.settled)
			}
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
		runInBubble(t, name, func(t *testing.T, r *fixture) {
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

// markingFinder is a platform that can mark a part, and could look for it if it were allowed to.
type markingFinder struct{ *scriptedFinder }

func (markingFinder) Mark(part Part) Part { return marked(part.(string)) }

// panickingMarker is a platform whose Mark panics.
type panickingMarker struct{ *fake }

func (panickingMarker) Mark(Part) Part { panic("no mark near " + secret) }

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
			got, err := rows.Thread(t.Context(), r.store.Reader, room, want.ID)
			if diff := cmp.Diff(&want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
	})
}
