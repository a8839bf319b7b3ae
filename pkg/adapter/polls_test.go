package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// newBallots makes rows of votes whose events are their ids.
func newBallots(s *Shell) *Ballots {
	return &Ballots{
		Find: func(ctx context.Context, b *Ballot) (*msg.Message, error) {
			return rows.MessageByPollRef(ctx, s.Store.Reader, "d", b.Ref)
		},
		Make: func(b *Ballot, poll *msg.Message) (in Inbound, err error) {
			m := &msg.Message{ChatJID: poll.ChatJID, Verb: msg.VerbVote}
			err = json.Unmarshal(b.Event, &m.PlatformID)
			in.Messages = []*msg.Message{m}
			return in, err
		},
	}
}

// vote receives a vote as a platform's receive loop does, and returns how long that took.
func (r *fixture) vote(s *Shell, w *Ballots, chat, ref, id string) time.Duration {
	r.t.Helper()
	began := time.Now()
	in, err := w.Receive(r.t.Context(), s, Ballot{ChatJID: chat, Ref: ref, Event: json.RawMessage(`"` + id + `"`)}, &Cursor{"offset", id})
	if err == nil && len(in.Messages) > 0 {
		err = s.Receive(r.t.Context(), in)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return time.Since(began)
}

// sendingPoll stores a poll that is being sent.
func (r *fixture) sendingPoll() *msg.Message {
	r.t.Helper()
	row := &msg.Message{ChatJID: room, Direction: msg.Out, Kind: msg.KindPoll, Content: "{}", OutState: msg.OutQueued}
	r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err })
	r.write(func(tx *store.Tx) error { return tx.ClaimOutbound(row.ID, 1, 1) })
	return row
}

// retry calls Retry until none wait, for at most some time.
func (r *fixture) retry(s *Shell, w *Ballots, most time.Duration) {
	r.t.Helper()
	for end := time.Now().Add(most); w.Waiting() && time.Now().Before(end); {
		again, err := w.Retry(r.t.Context(), s)
		if err != nil {
			r.t.Fatal(err)
		}
		if again != nil {
			<-again
		}
	}
}

// votes are the ids of the stored votes, in order.
func (r *fixture) votes(s *Shell) string {
	r.t.Helper()
	var ids []string
	last, err := s.Store.LastMessageID(r.t.Context())
	for id := int64(1); id <= last && err == nil; id++ {
		var m *msg.Message
		if m, err = s.Store.Message(r.t.Context(), id); m != nil && m.Verb == msg.VerbVote {
			ids = append(ids, m.PlatformID)
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(ids, " ")
}

// A vote may come before the ids of its poll are stored. Events of others do not wait for that, and a
// restart loses no vote.
func TestBallots_PollIsBeingSent_VotesWaitBesideTheLoop(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		s := r.shell()
		w := newBallots(s)
		if took := r.vote(s, w, room, "61", "1"); took != 0 || w.Waiting() {
			t.Errorf("no poll is being sent: waiting %v, after %s", w.Waiting(), took)
		}
		row := r.sendingPoll()
		if took := r.vote(s, w, "irc:other", "61", "2"); took != 0 || w.Waiting() {
			t.Errorf("in another chat: waiting %v, after %s", w.Waiting(), took)
		}
		for _, id := range []string{"3", "4"} {
			if took := r.vote(s, w, room, "61", id); took != 0 || !w.Waiting() {
				t.Errorf("vote %s: waiting %v, after %s", id, w.Waiting(), took)
			}
		}
		if offset, err := s.Store.DaemonCursor(t.Context(), s.Daemon, "offset"); offset != "4" || err != nil {
			t.Errorf("the cursor is %q, %v, want that of the last vote", offset, err)
		}
		r.retry(s, w, time.Second)
		if got := r.votes(s); got != "" || !w.Waiting() {
			t.Errorf("stored %q before the poll is known", got)
		}

		s = r.shell() // a restart
		w = newBallots(s)
		if err := w.Load(t.Context(), s); err != nil || !w.Waiting() {
			t.Fatalf("no vote waits after a restart, %v", err)
		}
		r.write(func(tx *store.Tx) error { return rows.PutPollRef(tx, "d", "61", row.ID) })
		r.vote(s, w, room, "61", "5") // behind the earlier ones
		r.retry(s, w, time.Second)
		r.vote(s, w, room, "61", "6")
		if got := r.votes(s); got != "3 4 5 6" || w.Waiting() {
			t.Errorf("stored %q, want them in order", got)
		}
		if left, err := s.Store.DaemonCursors(t.Context(), s.Daemon, ballotPrefix); len(left) > 0 || err != nil {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}

// Votes in polls of others end, also when many come while a poll is being sent.
func TestBallots_PollsOfOthers_AreBoundedAndDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var log strings.Builder
		s := r.shell(logged(&log))
		w := newBallots(s)
		row := r.sendingPoll()
		for i := range maxBallots + 10 {
			r.vote(s, w, "", fmt.Sprint(i%3), fmt.Sprint(i))
		}
		if len(w.waiting) != maxBallots || !strings.Contains(log.String(), "too many wait") {
			t.Errorf("%d wait, want %d", len(w.waiting), maxBallots)
		}
		r.retry(s, w, 2*ballotTimeout)
		if got := r.votes(s); got != "" || w.Waiting() {
			t.Errorf("stored %q, waiting %v", got, w.Waiting())
		}
		if r.vote(s, w, "", "9", "9"); w.Waiting() {
			t.Error("it waits for a poll that was waited for in vain")
		}
		r.write(func(tx *store.Tx) error { return tx.SettleOutbound(row.ID, msg.OutSent, "8") })
		other := &msg.Message{ChatJID: room, Direction: msg.In, PlatformID: "9"}
		r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(other); return err })
		w.Find = func(ctx context.Context, _ *Ballot) (*msg.Message, error) { return s.Store.Message(ctx, other.ID) }
		if r.vote(s, w, room, "9", "9"); w.Waiting() || r.votes(s) != "" {
			t.Error("a message that is no poll counts as one")
		}
	})
}
