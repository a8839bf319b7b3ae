package adapter

import (
	"context"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// A vote may come before the ids of its poll are stored.
func TestPollFor_PollIsBeingSent_WaitsForItsIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		s := r.shell()
		row := &msg.Message{ChatJID: room, Direction: msg.Out, Kind: msg.KindPoll, Content: "{}", OutState: msg.OutQueued}
		r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err })
		find := func(ctx context.Context) (*msg.Message, error) { return s.Store.MessageByPollRef(ctx, "d", "61") }
		find1 := func() (found bool, waited time.Duration) {
			t.Helper()
			began := time.Now()
			poll, err := s.PollFor(t.Context(), room, find)
			if err != nil {
				t.Fatal(err)
			}
			return poll != nil && poll.ID == row.ID, time.Since(began)
		}
		if found, waited := find1(); found || waited != 0 {
			t.Errorf("no poll is being sent: %v after %s", found, waited)
		}
		r.write(func(tx *store.Tx) error { return tx.ClaimOutbound(row.ID, 1, 1) })
		if found, waited := find1(); found || waited != pollTimeout {
			t.Errorf("another poll is being sent: %v after %s", found, waited)
		}
		for range 10 { // further votes in polls of others
			if found, waited := find1(); found || waited != 0 {
				t.Errorf("it was waited for: %v after %s", found, waited)
			}
		}
		if poll, err := s.PollFor(t.Context(), "discord:9", find); poll != nil || err != nil {
			t.Errorf("in another chat: %+v, %v", poll, err)
		}
		r.write(func(tx *store.Tx) error { // it failed, and another one is sent
			return tx.SettleOutbound(row.ID, msg.OutFailed, "")
		})
		row = &msg.Message{ChatJID: room, Direction: msg.Out, Kind: msg.KindPoll, Content: "{}", OutState: msg.OutQueued}
		r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err })
		r.write(func(tx *store.Tx) error { return tx.ClaimOutbound(row.ID, 1, 1) })
		go func() {
			Pause(t.Context(), time.Second)
			r.write(func(tx *store.Tx) error { return tx.PutPollRef("d", "61", row.ID) })
		}()
		if found, waited := find1(); !found || waited > 2*time.Second {
			t.Errorf("the poll is being sent: %v after %s", found, waited)
		}
		other := &msg.Message{ChatJID: room, Direction: msg.In, PlatformID: "9"}
		r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(other); return err })
		r.write(func(tx *store.Tx) error { return tx.SettleOutbound(row.ID, msg.OutSent, "8") })
		poll, err := s.PollFor(t.Context(), "", func(ctx context.Context) (*msg.Message, error) { return s.Store.Message(ctx, other.ID) })
		if poll != nil || err != nil {
			t.Errorf("a message that is no poll: %+v, %v", poll, err)
		}
	})
}
