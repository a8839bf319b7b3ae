package adapter

import (
	"testing"
	"time"

	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestAsleep_NothingDecides_MessageIsMarkedAndPressesAreAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		now := time.Now().UnixMilli()
		mention := &msg.Message{ChatJID: room, Direction: msg.In, PlatformID: "41", Verb: msg.VerbMention, Timestamp: now, ReceivedAt: now}
		aside := &msg.Message{ChatJID: room, Direction: msg.In, PlatformID: "42", Timestamp: now, ReceivedAt: now}
		r.write(func(tx *store.Tx) error {
			for _, m := range []*msg.Message{mention, aside} {
				if _, _, err := tx.PutMessage(m); err != nil {
					return err
				}
			}
			return nil
		})
		r.start(func(o *Options) { o.PollInterval = 2 * time.Second })
		pass(msg.AsleepAfter*time.Second - time.Second)
		r.expectSent()
		pass(asleepInterval + 4*time.Second)
		r.expectSent(string(msg.MarkAsleep))
		pass(time.Minute)
		r.expectSent(string(msg.MarkAsleep))
		r.write(func(tx *store.Tx) error {
			return tx.Decide(mention.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonDeleted}, time.Now().UnixMilli())
		})
		pass(4 * time.Second)
		r.expectSent(string(msg.MarkAsleep), "-"+string(msg.MarkAsleep))
	})
}

func TestReceivePress_GatedDoesNotRun_SaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		asked := r.agent(room, "t", groupconfig.ProgressOff).asks()
		s := r.shell()
		beat := rows.Daemon{Name: "gated", Connection: "connected", HeartbeatAt: time.Now().UnixMilli()}
		for _, step := range []struct {
			id, connection, want string
			after                time.Duration
		}{{"1", "connected", "", 0}, {"2", "connected", asleepNotice, maxHeartbeatAge}, {"3", "stopped", asleepNotice, 0}} {
			beat.Connection = step.connection
			r.write(func(tx *store.Tx) error { return rows.Heartbeat(tx, beat) })
			pass(step.after)
			notice, err := s.ReceivePress(t.Context(), press(step.id, asker, "early", asked.ID, 1))
			if err != nil || notice != step.want {
				t.Errorf("%s: %q, %v; want %q", step.id, notice, err, step.want)
			}
			beat.HeartbeatAt = time.Now().UnixMilli()
		}
	})
}
