package adapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// brokenLink is a platform whose calls end with an error until that is cleared.
type brokenLink struct {
	*fake
	mu    sync.Mutex
	err   error
	calls []time.Time // those that failed
}

func (b *brokenLink) Send(ctx context.Context, m *msg.Message, part Part) (string, error) {
	b.mu.Lock()
	err := b.err
	if err != nil {
		b.calls = append(b.calls, time.Now())
	}
	b.mu.Unlock()
	if err != nil {
		return "", err
	}
	return b.fake.Send(ctx, m, part)
}

func (b *brokenLink) Mark(part Part) Part { return marked(part.(string)) }

// end sets what the calls end with, and returns how many have failed so far.
func (b *brokenLink) end(with error) (failed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = with
	return len(b.calls)
}

func unreached() error {
	return &Failure{Class: msg.Transient, Err: fmt.Errorf("%w: connection refused", ErrUnsent)}
}

// many queues a row in each of many chats.
func (r *fixture) many(rows int) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		for i := range rows {
			m := &msg.Message{ChatJID: fmt.Sprint("irc:", i), Direction: msg.Out, OutState: msg.OutQueued, Content: fmt.Sprint("text ", i), ReceivedAt: time.Now().UnixMilli()}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// lostRows counts the rows that ended without being sent, by state and class.
func (r *fixture) lostRows() map[string]int {
	r.t.Helper()
	rows, err := gatedtest.LostRows(r.t.Context(), r.store.Reader, 0, "", 1<<20)
	if err != nil {
		r.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, l := range rows {
		counts[string(l.State)+" "+string(l.Class)]++
	}
	return counts
}

func TestOutage_ManyChats_CostsLittleAndEndsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		rows := 10_000
		if testing.Short() {
			rows = 1000
		}
		link := &brokenLink{fake: r.platform, err: unreached()}
		r.as = link
		r.many(rows)
		var log strings.Builder
		r.start(marking, logged(&log))
		pass(30 * time.Minute)
		const half = 30 * 60 / 10
		if tries := link.end(nil); tries < half || tries > half+2*maxSends {
			t.Errorf("%d tries in half an hour", tries)
		}
		pass(maxProbe + time.Second)
		if got := len(r.platform.sent()); got != rows {
			t.Errorf("%d of %d were sent once the platform answered", got, rows)
		}
		if lost := r.lostRows(); len(lost) > 0 {
			t.Errorf("lost: %v", lost)
		}
		for _, line := range []string{"the platform does not answer", "the platform answers again"} {
			if n := strings.Count(log.String(), line); n != 1 {
				t.Errorf("%q is logged %d times", line, n)
			}
		}
	})
}

// A send that may have arrived puts few rows in doubt, and those follow with a mark.
func TestOutage_AnswersOf5xx_DoubtFewRows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		link := &brokenLink{fake: r.platform, err: errCause}
		r.as = link
		r.many(100)
		r.start(marking)
		pass(time.Minute)
		if tries := link.end(nil); tries > maxSends+8 {
			t.Errorf("%d tries in a minute", tries)
		}
		pass(time.Hour)
		copies := map[string]bool{}
		for _, text := range r.platform.sent() {
			copies[strings.TrimPrefix(text, marked(""))] = true
		}
		if len(copies) != 100 || len(r.platform.sent()) != 100 || len(r.lostRows()) > 0 {
			t.Errorf("%d rows arrived as %d posts, lost %v", len(copies), len(r.platform.sent()), r.lostRows())
		}
	})
}

func TestOutage_LongerThanADay_ExpiresRows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		link := &brokenLink{fake: r.platform, err: unreached()}
		r.as = link
		r.many(50)
		r.start(marking)
		pass(24*time.Hour - time.Minute)
		if lost := r.lostRows(); len(lost) > 0 {
			t.Errorf("lost within a day: %v", lost)
		}
		young := r.out("", "young")
		pass(10 * time.Minute)
		if lost := r.lostRows(); lost["failed expired"] != 50 || len(lost) != 1 {
			t.Errorf("lost after a day: %v", lost)
		}
		link.end(nil)
		pass(maxProbe + time.Second)
		r.expect(young, "sent: sent")
		r.expectSent("young")
	})
}

// The clock is a day late when the daemon starts, and is set.
func TestOutage_ClockSetAhead_ExpiresNothingThatCanBeSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		id := r.out("", "a")
		r.start(func(o *Options) { o.Now = func() time.Time { return time.Now().Add(48 * time.Hour) } })
		pass(time.Second)
		r.expect(id, "sent: sent")
	})
}

// One row fails while others are answered: nothing is held.
func TestAdmission_OthersAreAnswered_StaysOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.script("slow", func(ctx context.Context) error {
			Pause(ctx, 10*time.Second)
			return unreached()
		}, fails(unreached()), fails(unreached()))
		r.outIn("irc:slow", "", "slow")
		r.start()
		pass(5 * time.Second)
		var texts []string
		for i := range 10 {
			texts = append(texts, fmt.Sprint(i))
			r.outIn(fmt.Sprint("irc:", i), "", texts[i])
		}
		r.look()
		got := r.platform.sent()[1:]
		slices.Sort(got)
		if !slices.Equal(got, texts) {
			t.Errorf("sent %q", got)
		}
		pass(time.Minute)
		if lost := r.lostRows(); len(lost) > 0 {
			t.Error(lost)
		}
	})
}

// The connection that ends since the platform refuses it shows that the platform answers.
func TestMark_ConnectionRefused_IsSentAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.script("a", fails(errCause))
		id := r.out("", "a")
		refused := refuses(&Failure{Class: msg.Permanent, After: 30 * time.Second, Err: errors.New("another program reads the updates")})
		r.as = &markingLine{line{fake: r.platform, script: slices.Repeat([]func(context.Context, *Shell) error{refused}, 100)}}
		r.start(marking)
		pass(time.Minute)
		r.expect(id, "sent: sent")
		r.expectSent("a", marked("a"))
	})
}

// markingLine is a line that can mark parts.
type markingLine struct{ line }

func (*markingLine) Mark(part Part) Part { return marked(part.(string)) }

// connectedLink is a brokenLink with a connection that works.
type connectedLink struct {
	*brokenLink
	line *line
}

func (c connectedLink) Listen(ctx context.Context, s *Shell) error { return c.line.Listen(ctx, s) }

func TestUnanswered_Gauge_IsTheTimeWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		link := &brokenLink{fake: r.platform, err: unreached()}
		r.as = connectedLink{link, &line{}}
		r.out("", "a")
		r.start()
		seconds := func() float64 { return r.counted("arizuko_platform_unanswered_seconds")[""] }
		pass(time.Minute)
		if s := seconds(); s < 55 || s > 60 {
			t.Errorf("%v s after a minute of silence", s)
		}
		link.end(nil)
		pass(time.Minute)
		if s := seconds(); s != 0 {
			t.Errorf("%v s after an answer", s)
		}
	})
}

// Once the platform answers after a hang, whatever hung or waits is tried again within 15 s.
func TestOutage_HangEnds_AllIsRenewedWithin15Seconds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var rows []int64
		for i, text := range []string{"a", "b", "c"} {
			r.platform.script(text, takes(time.Hour))
			rows = append(rows, r.outIn(fmt.Sprint(platform, ":", i), "", text))
		}
		waits := fails(failure(msg.Transient, 0))
		r.platform.script("d", waits, waits, waits, waits, waits, waits)
		rows = append(rows, r.outIn(platform+":d", "", "d"))
		r.platform.repeats = true
		r.start()
		pass(50 * time.Second)
		r.running.admission.connection(true, false)
		r.running.admission.connection(false, false)
		r.running.admission.connection(true, false)
		pass(15 * time.Second)
		for _, row := range rows {
			r.expect(row, "sent: sent")
		}
	})
}
