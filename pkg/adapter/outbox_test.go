package adapter

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestOutbox_KeepsOrderInEachLane(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		lanes := []struct{ chat, thread string }{{room, ""}, {room, "t"}, {"irc:other", ""}, {"irc:other", "t"}, {"irc:t", ""}}
		want, laneOf := map[int][]string{}, map[int64]int{}
		for n := range 4 {
			for i, lane := range lanes {
				first, second := fmt.Sprintf("%d.%da", i, n), fmt.Sprintf("%d.%db", i, n)
				laneOf[r.outIn(lane.chat, lane.thread, first+"|"+second)] = i
				want[i] = append(want[i], first, second)
				r.platform.script(first, takes(time.Duration(1+i)*time.Second))
				r.platform.script(second, takes(time.Duration(5-i)*time.Second))
			}
		}
		begin := time.Now()
		r.start()
		pass(4 * 6 * time.Second) // as one lane alone needs
		got := map[int][]string{}
		for _, c := range r.platform.calls {
			got[laneOf[c.Row]] = append(got[laneOf[c.Row]], c.Text)
			if i := laneOf[c.Row]; c.Text == want[i][2] && c.At.Sub(begin) != 6*time.Second {
				t.Errorf("the second row of lane %d began after %v", i, c.At.Sub(begin))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("sent by lane (-want +got):\n%s", diff)
		}
		for id := range laneOf {
			r.expect(id, "sent: sent sent")
		}
	})
}

func TestOutbox_WaitingLane_DoesNotDelayOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		for i := range 2 * maxSends {
			text := fmt.Sprint("slow ", i)
			r.platform.script(text, fails(failure(msg.Rate, time.Hour)))
			r.out(fmt.Sprint(i), text)
		}
		after := r.out("0", "after")
		r.start()
		synctest.Wait()
		other := r.out("other", "other")
		pass(time.Minute)
		r.expect(other, "sent: sent")
		r.expect(after, "queued:")
		pass(time.Hour)
		r.expect(after, "sent: sent")
	})
}

func TestOutbox_MoreLanesThanSlots(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var ids []int64
		for i := range 2*maxSends + 1 {
			text := fmt.Sprint(i)
			r.platform.script(text, takes(time.Second))
			ids = append(ids, r.out(text, text))
		}
		r.start()
		for n, want := range []int{maxSends, 2 * maxSends, 2*maxSends + 1} {
			synctest.Wait()
			if got := len(r.platform.sent()); got != want {
				t.Errorf("%d sent in second %d, want %d", got, n, want)
			}
			pass(time.Second)
		}
		for _, id := range ids {
			r.expect(id, "sent: sent")
		}
	})
}

func TestOutbox_NewRows_AreDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.start()
		synctest.Wait()
		polled := r.out("", "polled")
		pass(time.Minute - time.Nanosecond)
		r.expect(polled, "queued:")
		pass(time.Nanosecond)
		r.expect(polled, "sent: sent")

		woken := r.out("", "woken")
		r.wake <- struct{}{}
		synctest.Wait()
		r.expect(woken, "sent: sent")

		r.platform.script("first", takes(time.Second))
		first := r.out("", "first")
		r.wake <- struct{}{}
		synctest.Wait()
		second := r.out("", "second") // to the lane that is at work
		r.wake <- struct{}{}
		synctest.Wait()
		r.expect(first, "sending: sending")
		pass(time.Second)
		r.expect(second, "sent: sent")
	})
}

func TestOutbox_OtherPlatforms_AreIgnored(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var ids []int64
		for _, chat := range []string{"web:acme", "ircs:room", "ir:c", "IRC:room", "telegram:irc:room"} {
			ids = append(ids, r.outIn(chat, "", "x"))
		}
		r.start()
		pass(time.Minute)
		for _, id := range ids {
			r.expect(id, "queued:")
		}
		r.expectSent()
	})
}

func TestOutbox_StopDuringSend_WaitsForGrace(t *testing.T) {
	tests := []struct {
		name  string
		needs time.Duration
		took  time.Duration
		left  string // when the shell has stopped
		want  string // when the next one has run
		sends []string
	}{
		{"soon there", 2 * time.Second, 2 * time.Second, "sending: sent queued", "sent: sent sent", []string{"a", "b"}},
		{"never there", time.Hour, sendGrace, "sending: ambiguous queued", "ambiguous: ambiguous sent", []string{"a", "b"}},
	}
	for _, tt := range tests {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			r.platform.script("a", takes(tt.needs))
			id, next := r.out("", "a|b"), r.out("", "next")
			stop := r.start()
			synctest.Wait()
			begin := time.Now()
			stop()
			if took := time.Since(begin); took != tt.took {
				t.Errorf("the stop took %v, want %v", took, tt.took)
			}
			r.expect(id, tt.left)
			r.expect(next, "queued:")
			r.expectSent("a")
			r.start()
			synctest.Wait()
			r.expect(id, tt.want)
			r.expect(next, "sent: sent")
			r.expectSent("a", "b", "next")
		})
	}
}

// TestOutbox_Stop_StartsNoSend stops the shell while lanes wait for a slot, among them some whose
// rows were begun before.
func TestOutbox_Stop_StartsNoSend(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.repeats = true
		for i := range maxSends {
			text := fmt.Sprint("busy ", i)
			r.platform.script(text, takes(time.Second))
			r.out(text, text)
		}
		stop := r.start()
		synctest.Wait()
		waiting := []int64{r.begun("sending", msg.OutSending), r.begun("queued", msg.OutQueued)}
		for i := range maxSends {
			waiting = append(waiting, r.out(fmt.Sprint(i), "never"))
		}
		r.wake <- struct{}{}
		synctest.Wait()
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the stop took %v", took)
		}
		for i, want := range []string{"sending: sending", "sending: queued", "queued:"} {
			r.expect(waiting[i], want)
		}
		if got := len(r.platform.sent()); got != maxSends {
			t.Errorf("%d were sent", got)
		}
	})
}

func TestOutbox_StopAtOnce_SendsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		ids := []int64{r.begun("a", msg.OutQueued), r.out("t", "b")}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.shell().Run(ctx); err != nil {
			t.Error(err)
		}
		r.expect(ids[0], "sending: queued")
		r.expect(ids[1], "queued:")
		r.expectSent()
	})
}

func TestOutbox_StopBeforeClaim_LogsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		id := r.out("", "a")
		ctx, cancel := context.WithCancel(t.Context())
		r.platform.cut = func(m *msg.Message) ([]Part, error) {
			cancel()
			return pieces(m.Content), nil
		}
		var log strings.Builder
		shell := r.shell(func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		if err := shell.Run(ctx); err != nil || log.Len() > 0 {
			t.Errorf("%v, logged %s", err, log.String())
		}
		r.expect(id, "queued:")
		r.expectSent()
	})
}

// upload is a part with a file.
type upload struct{ bytes int64 }

func (u upload) UploadSize() int64 { return u.bytes }

func TestSendTimeout_Upload_HasTimeForItsBytes(t *testing.T) {
	for part, want := range map[Part]time.Duration{
		"text": time.Minute, upload{}: time.Minute, upload{minUploadRate}: time.Minute + time.Second, upload{50 << 20}: 584 * time.Second,
	} {
		if got := (&delivery{lane: &lane{}}).timeout(part); got.Truncate(time.Second) != want {
			t.Errorf("%v: %v, want %v", part, got, want)
		}
	}
}

// A lane that was moved while its row waits is found under its new address.
func TestOutbox_ChatMoves_LanesFollow(t *testing.T) {
	const to = "irc:room2"
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.script("first", fails(failure(msg.Transient, 0)))
		first, second := r.out("t", "first"), r.out("t", "second")
		waiting := r.out("u", "waiting")
		r.platform.script("waiting", fails(failure(msg.Rate, 10*time.Second)))
		r.start(func(o *Options) { o.PollInterval = time.Hour })
		synctest.Wait()
		r.write(func(tx *store.Tx) error { return chatmove.Move(tx, room, to, 1) })
		r.look()
		pass(firstPause)
		r.expect(first, "sent: sent")
		r.expect(second, "sent: sent")
		pass(10 * time.Second)
		r.expect(waiting, "sent: sent")
	})
}

// A chat that moves back is one move, as before.
func TestOutbox_ChatMovesBack_LanesFollow(t *testing.T) {
	const former = "irc:room2"
	inBubble(t, func(t *testing.T, r *fixture) {
		r.write(func(tx *store.Tx) error { return chatmove.Move(tx, former, room, 1) })
		r.platform.script("waiting", fails(failure(msg.Rate, time.Second)))
		row := r.out("", "waiting")
		r.start(func(o *Options) { o.PollInterval = time.Hour })
		synctest.Wait()
		r.write(func(tx *store.Tx) error { return chatmove.Move(tx, room, former, 2) })
		r.look()
		pass(2 * time.Second)
		r.expect(row, "sent: sent")
	})
}

// The last rows of a chat that takes several pages to move are found at once, too.
func TestOutbox_ChatMovesInPages_LanesFollow(t *testing.T) {
	const to, rows = "irc:room2", 1001
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.script("waiting", fails(failure(msg.Rate, time.Second)))
		first := r.out("", "waiting")
		r.write(func(tx *store.Tx) error {
			for range rows {
				m := &msg.Message{ChatJID: room, ThreadID: "t", Direction: msg.Out, OutState: msg.OutQueued, Content: "x"}
				if _, _, err := tx.PutMessage(m); err != nil {
					return err
				}
			}
			return chatmove.Move(tx, room, to, 1)
		})
		r.start(func(o *Options) { o.PollInterval = time.Hour })
		synctest.Wait()
		r.look()
		r.expect(first, "queued:")
		if _, err := chatmove.Finish(t.Context(), r.store, 1); err != nil {
			t.Fatal(err)
		}
		r.look()
		pass(2 * time.Second)
		r.expect(first, "sent: sent")
	})
}

// Nothing tells the shell of a row whose id it has seen already.
func TestOutbox_RowQueuedAgainByHand_IsFoundBySweep(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		id := r.out("", "again")
		r.exec(`UPDATE messages SET out_state = 'cancelled'`)
		r.start()
		pass(sweepInterval / 2)
		r.exec(`UPDATE messages SET out_state = 'queued'`)
		r.look()
		r.expect(id, "queued:")
		pass(sweepInterval / 2)
		r.expect(id, "sent: sent")
	})
}

// It does not run in parallel: the goroutines of other tests would count.
func TestOutbox_ManyLanes_RunNoMoreWorkersThanSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t)
		const lanes = 10 * maxSends
		for i := range lanes {
			r.platform.script(fmt.Sprint(i), takes(time.Second))
			r.out(fmt.Sprint(i), fmt.Sprint(i))
		}
		before := runtime.NumGoroutine()
		r.start()
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > maxSends+10 {
			t.Errorf("%d goroutines for %d lanes", more, lanes)
		}
		pass(lanes / maxSends * time.Second)
		if got := len(r.platform.sent()); got != lanes {
			t.Errorf("%d sent", got)
		}
	})
}

// BenchmarkOutbox_Drain reports how much longer a row takes among ten times as many lanes.
func BenchmarkOutbox_Drain(b *testing.B) {
	const few, many = 500, 5000
	perRow := func(lanes int) float64 {
		r := newFixture(b)
		rows := make([]*msg.Message, lanes)
		for i := range rows {
			rows[i] = &msg.Message{ChatJID: fmt.Sprint(platform, ":", i), Direction: msg.Out, OutState: msg.OutQueued, Content: "x", Source: msg.SourceAgent}
		}
		r.write(func(tx *store.Tx) error {
			for _, m := range rows {
				if _, _, err := tx.PutMessage(m); err != nil {
					return err
				}
			}
			return nil
		})
		settled := make(chan struct{}, lanes)
		began := time.Now()
		stop := r.start(func(o *Options) { o.Settled = func(*msg.Message) { settled <- struct{}{} } })
		for range lanes {
			<-settled
		}
		took := time.Since(began)
		stop()
		return took.Seconds() / float64(lanes)
	}
	ratio, n := 0.0, 0
	for b.Loop() {
		ratio += perRow(many) / perRow(few)
		n++
	}
	b.ReportMetric(ratio/float64(n), "ratio")
}
