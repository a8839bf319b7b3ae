package adapter

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// decorator is a platform on which every decoration fails for ever, in the way that its content says.
type decorator struct{ *fake }

func (d decorator) Cut(m *msg.Message) ([]Part, error) {
	if m.Decorates() {
		return []Part{edit(m.Content)}, nil
	}
	return d.fake.Cut(m)
}

func (d decorator) Send(ctx context.Context, m *msg.Message, part Part) (string, error) {
	id, err := d.fake.Send(ctx, m, part)
	switch {
	case !m.Decorates() || err != nil:
		return id, err
	case m.Content == "hang":
		<-ctx.Done()
		return "", ctx.Err()
	}
	after := map[string]time.Duration{"rate for a second": time.Second, "rate for an hour": time.Hour}[m.Content]
	class := msg.ErrorClass(m.Content)
	if after > 0 {
		class = msg.Rate
	}
	return "", failure(class, after)
}

func TestDecorations_FailForEver_AnswersArriveInOrderWithinTheirPace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		failures := []string{"hang", string(msg.Ambiguous), string(msg.Transient), string(msg.Rate), "rate for a second",
			"rate for an hour", string(msg.Permanent), string(msg.Auth)}
		kinds := []msg.Kind{msg.KindEdit, msg.KindReaction, msg.KindDelete, msg.KindPoll}
		rounds := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(failures), 0, 8), 1, 8).Draw(rt, "decorations")
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.as = decorator{r.platform}
			r.start(func(o *Options) {
				o.Pace.Lane = func(l store.Lane) (string, []Limit) { return l.ChatJID, []Limit{{Every: time.Second, Burst: 3}} }
			})
			var decorations []int64
			for n, round := range rounds {
				for i, how := range round {
					m := &msg.Message{
						ChatJID: room, Direction: msg.Out, OutState: msg.OutQueued, Kind: kinds[(n+i)%len(kinds)], Content: how,
						TargetID: fmt.Sprint(n, ".", i), Source: msg.SourceTool, ReceivedAt: time.Now().UnixMilli(),
					}
					r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
					decorations = append(decorations, m.ID)
				}
				first, second := r.out("", fmt.Sprint("answer ", n)), r.out("", fmt.Sprint("answer ", n, "b"))
				r.look()
				pass(3 * time.Second)
				for _, id := range []int64{first, second} {
					if got := r.states(id); got != "sent: sent" {
						rt.Errorf("answer %d after 3 s: %s", id, got)
					}
				}
			}
			pass(time.Hour)
			last := int64(0)
			for _, c := range r.platform.calls {
				if m := r.row(c.Row); !m.Decorates() {
					if c.Row < last {
						rt.Errorf("answer %d after %d", c.Row, last)
					}
					last = c.Row
				}
			}
			for _, id := range decorations {
				if m := r.row(id); m.OutState != msg.OutFailed {
					rt.Errorf("decoration %d (%s) has not failed: %s", id, m.Content, r.states(id))
				}
			}
		})
	})
}

// A newer decoration takes the place of one that is still tried. One of a message that is being delivered waits for that
// without holding others.
func TestDecorations_Superseded_AndWaitingForTheirMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.repeats = true
		r.platform.script("hello", fails(failure(msg.Rate, time.Minute)))
		r.platform.script("one", fails(failure(msg.Transient, 0)))
		waits := r.changed(msg.KindEdit, r.out("", "hello"), "later")
		r.start()
		pass(time.Second)
		put := func(content string) int64 {
			m := &msg.Message{ChatJID: room, Direction: msg.Out, OutState: msg.OutQueued, Kind: msg.KindEdit, Content: content,
				TargetID: "9", Source: msg.SourceTool, ReceivedAt: time.Now().UnixMilli()}
			r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
			r.look()
			return m.ID
		}
		one := put("one")
		two := put("two")
		pass(5 * time.Second)
		r.expect(one, "cancelled: cancelled")
		r.expect(two, "sent: sent")
		if got := r.row(waits).OutState; got != msg.OutQueued {
			t.Errorf("the edit of a message that waits is %s", got)
		}
		pass(2 * time.Minute)
		r.expect(waits, "sent: sent")
	})
}
