package adapter

import (
	"errors"
	"slices"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// changed stores a row about an own message.
func (r *fixture) changed(kind msg.Kind, of int64, content string) int64 {
	r.t.Helper()
	m := &msg.Message{
		ChatJID: room, Direction: msg.Out, OutState: msg.OutQueued, Kind: kind, Content: content, DerivedFrom: of, Source: msg.SourceTool,
	}
	r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m.ID
}

// An edit and a reaction are queued after their message. The adapter is killed after each send, and sends
// again what may not have arrived: neither is lost, and both name the message by the id that it got at last.
func TestDeliver_ChangesOfAQueuedMessage_FollowItThroughCrashes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.repeats = true
		r.platform.cut = func(m *msg.Message) ([]Part, error) {
			if !m.Kind.Changes() {
				return pieces(m.Content), nil
			}
			if m.Target == nil || len(m.Target.Parts) != 1 || !m.Target.Parts[0].Sent {
				return nil, errors.New("its message was not sent")
			}
			return []Part{string(m.Kind) + " " + m.Target.Parts[0].PlatformID}, nil
		}
		edit, reaction := "edit "+idOf("hello"), "reaction "+idOf("hello")
		for _, text := range []string{"hello", edit, reaction} {
			r.platform.script(text, r.crashing(nil))
		}
		id := r.out("", "hello")
		edited, reacted := r.changed(msg.KindEdit, id, "hello you"), r.changed(msg.KindReaction, id, "👍")
		next := r.out("", "next")
		for range 3 {
			stop := r.start()
			pass(time.Second)
			r.crash(stop)
		}
		r.start()
		pass(time.Minute)
		sent := slices.DeleteFunc(r.platform.sent(), func(text string) bool { return text == "next" }) // it waits for none
		if want := []string{"hello", "hello", edit, edit, reaction, reaction}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
		for _, row := range []int64{id, edited, reacted, next} {
			r.expect(row, "sent: sent")
		}
	})
}

func TestDeliver_ChangeOfAFailedMessage_KnowsIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var target *msg.Target
		r.platform.cut = func(m *msg.Message) ([]Part, error) {
			if m.Kind.Changes() {
				target = m.Target
				return nil, errors.New("its message was not sent")
			}
			return pieces(m.Content), nil
		}
		r.platform.script("hello", fails(&Failure{Class: msg.Permanent, Err: errCause}))
		id := r.out("", "hello")
		edited := r.changed(msg.KindEdit, id, "you")
		r.start()
		pass(time.Second)
		r.expect(id, "failed: failed")
		r.expect(edited, "failed: failed")
		if target == nil || len(target.Parts) != 1 || target.Parts[0].Sent {
			t.Errorf("%+v", target)
		}
	})
}
