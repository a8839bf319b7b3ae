package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// poll stores an open poll of a chat with the options a, b and c. Its message is delivered unless the
// platform id is "".
func poll(t testing.TB, s *store.Store, chatJID, platformID string, set ...func(*msg.StoredPoll)) *msg.StoredPoll {
	t.Helper()
	p := &msg.StoredPoll{
		Folder: folder, ChatJID: chatJID, Topic: "#lunch", CreatedAt: 100,
		Poll: msg.Poll{Question: "Lunch?", Options: []string{"a", "b", "c"}},
	}
	for _, f := range set {
		f(p)
	}
	m := &msg.Message{ChatJID: chatJID, Direction: msg.Out, Kind: msg.KindPoll, Content: p.Poll.JSON(), OutState: msg.OutQueued, ReceivedAt: 100}
	write(t, s, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		p.MessageID = m.ID
		if err := tx.PutPoll(p); err != nil || platformID == "" {
			return err
		}
		if err := tx.ClaimOutbound(m.ID, 1, 100); err != nil {
			return err
		}
		return tx.SettleOutbound(m.ID, msg.OutSent, platformID)
	})
	return p
}

func vote(t testing.TB, s *store.Store, id int64, voter string, v msg.Vote, at int64) error {
	t.Helper()
	return s.Write(t.Context(), func(tx *store.Tx) error { return tx.Vote(id, voter, "Name of "+voter, &v, at) })
}

func multiple(p *msg.StoredPoll) { p.Poll.Multiple = true }

func TestVote_LaterOne_Replaces(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, chat, "9", multiple)
	for i, v := range []msg.Vote{
		{Options: []int{1, 2}}, {Options: []int{3}}, {Options: []int{1}, Change: msg.VoteAdds}, {Options: []int{1}, Change: msg.VoteAdds},
		{Options: []int{3}, Change: msg.VoteRemoves},
	} {
		if err := vote(t, s, p.ID, "telegram:7", v, int64(200+i)); err != nil {
			t.Fatal(err)
		}
	}
	want := []msg.PollVote{{Voter: "telegram:7", Name: "Name of telegram:7", Options: []int{1}, At: 204}}
	if diff := cmp.Diff(want, must(s.PollVotes(t.Context(), p.ID))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := vote(t, s, p.ID, "telegram:7", msg.Vote{}, 300); err != nil {
		t.Fatal(err)
	}
	if votes := must(s.PollVotes(t.Context(), p.ID))(t); len(votes) != 0 {
		t.Errorf("after the withdrawal: %+v", votes)
	}
}

func TestVote_ThatDoesNotCount_IsStale(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, chat, "9")
	write(t, s, func(tx *store.Tx) error { return tx.ClosePoll(p.ID, 500) })
	if err := vote(t, s, p.ID, "a", msg.Vote{Options: []int{1}}, 500); err != nil {
		t.Errorf("a vote that arrived before the end: %v", err)
	}
	tests := map[string]error{
		"after the end":   vote(t, s, p.ID, "b", msg.Vote{Options: []int{1}}, 501),
		"unknown option":  vote(t, s, p.ID, "b", msg.Vote{Options: []int{4}}, 400),
		"option below 1":  vote(t, s, p.ID, "b", msg.Vote{Options: []int{0}}, 400),
		"of no poll":      vote(t, s, p.ID+1, "b", msg.Vote{Options: []int{1}}, 400),
		"a second end":    s.Write(t.Context(), func(tx *store.Tx) error { return tx.ClosePoll(p.ID, 600) }),
		"many of them":    vote(t, s, p.ID, "b", msg.Vote{Options: []int{1, 1, 1, 1}}, 400),
		"result is known": nil,
	}
	write(t, s, func(tx *store.Tx) error {
		return tx.EndPoll(p.ID, &msg.PollResult{Counts: []int{1, 0, 0}, Voters: 1}, 510)
	})
	tests["result is known"] = vote(t, s, p.ID, "b", msg.Vote{Options: []int{1}}, 400)
	for name, err := range tests {
		if !errors.Is(err, store.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := must(s.Poll(t.Context(), p.ID))(t); got.ClosedAt != 500 || got.EndPending || got.Poll.Result.Voters != 1 {
		t.Errorf("the poll: %+v", got)
	}
}

// end calls QueuePollEnd and returns the outbound rows after the poll's.
func end(t testing.TB, s *store.Store, p *msg.StoredPoll) (ended bool, rows []*msg.Message) {
	t.Helper()
	write(t, s, func(tx *store.Tx) (err error) { ended, err = tx.QueuePollEnd(p.ID, 700); return err })
	for id := p.MessageID + 1; ; id++ {
		m := must(s.Message(t.Context(), id))(t)
		if m == nil {
			return ended, rows
		}
		rows = append(rows, m)
	}
}

func TestQueuePollEnd_ClosesTheMessageOnce(t *testing.T) {
	t.Parallel()
	for jid, native := range map[string]bool{"telegram:-1": true, "slack:C1": false} {
		s := storetest.Open(t)
		p := poll(t, s, jid, "9")
		if err := vote(t, s, p.ID, "a", msg.Vote{Options: []int{2}}, 300); err != nil {
			t.Fatal(err)
		}
		write(t, s, func(tx *store.Tx) error { return tx.ClosePoll(p.ID, 500) })
		for range 2 {
			ended, rows := end(t, s, p)
			if !ended || len(rows) != 1 || rows[0].Kind != msg.KindPoll || rows[0].TargetID != "9" || rows[0].OutState != msg.OutQueued {
				t.Fatalf("%s: ended %v with %+v", jid, ended, rows)
			}
			closing := must(msg.ParsePoll(rows[0].Content))(t)
			if diff := cmp.Diff(&msg.PollResult{Counts: []int{0, 1, 0}, Voters: 1}, closing.Result); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", jid, diff)
			}
		}
		if got := must(s.Poll(t.Context(), p.ID))(t); got.EndPending || (got.Poll.Result == nil) != native {
			t.Errorf("%s: %+v", jid, got)
		}
	}
}

func TestQueuePollEnd_MessageThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, chat, "")
	write(t, s, func(tx *store.Tx) error { return tx.ClosePoll(p.ID, 500) })
	if ended, rows := end(t, s, p); ended || len(rows) != 0 {
		t.Errorf("before the delivery: %v, %+v", ended, rows)
	}
	write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(p.MessageID, 1, 100) })
	write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(p.MessageID, msg.OutFailed, "") })
	if ended, rows := end(t, s, p); !ended || len(rows) != 0 {
		t.Errorf("never delivered: %v, %+v", ended, rows)
	}

	for what, forget := range map[string]func(*store.Tx) error{
		"after the move":  func(tx *store.Tx) error { return tx.MoveChat("telegram:-5", "telegram:-1005", 600) },
		"of a former bot": func(tx *store.Tx) error { return errors.Join(tx.PutBot("teled", "1", 1), tx.PutBot("teled", "2", 2)) },
	} {
		s := storetest.Open(t)
		lost := poll(t, s, "telegram:-5", "9")
		if err := vote(t, s, lost.ID, "a", msg.Vote{Options: []int{2}}, 300); err != nil {
			t.Fatal(err)
		}
		write(t, s, func(tx *store.Tx) error { return tx.ClosePoll(lost.ID, 500) })
		write(t, s, forget)
		if ended, rows := end(t, s, lost); !ended || len(rows) != 0 {
			t.Errorf("%s: %v, %+v", what, ended, rows)
		}
		if got := must(s.Poll(t.Context(), lost.ID))(t).Poll.Result; !cmp.Equal(got, &msg.PollResult{Counts: []int{0, 1, 0}, Voters: 1}) {
			t.Errorf("%s: the result is %+v", what, got)
		}
	}
}

func TestPolls_Lists(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ids := func(all []*msg.StoredPoll, err error) string {
		t.Helper()
		var list []int64
		for _, p := range must(all, err)(t) {
			list = append(list, p.ID)
		}
		return fmt.Sprint(list)
	}
	closesAt := func(at int64) func(*msg.StoredPoll) { return func(p *msg.StoredPoll) { p.Poll.ClosesAt = at } }
	late, soon, never := poll(t, s, chat, "1", closesAt(900)), poll(t, s, chat, "2", closesAt(400)), poll(t, s, chat, "3")
	lost := poll(t, s, chat, "")
	write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(lost.MessageID, 1, 100) })
	write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(lost.MessageID, msg.OutFailed, "") })
	write(t, s, func(tx *store.Tx) error { return tx.ClosePoll(never.ID, 500) })

	if got, want := ids(s.PollsDue(t.Context(), 900, 10)), fmt.Sprint([]int64{soon.ID, late.ID}); got != want {
		t.Errorf("due: %s, not %s", got, want)
	}
	if got, want := ids(s.PollsDue(t.Context(), 899, 10)), fmt.Sprint([]int64{soon.ID}); got != want {
		t.Errorf("due earlier: %s, not %s", got, want)
	}
	if got, want := ids(s.PollsEnding(t.Context(), 0, 10)), fmt.Sprint([]int64{never.ID}); got != want {
		t.Errorf("ending: %s, not %s", got, want)
	}
	if got, want := ids(s.PollsUndelivered(t.Context(), 0, 10)), fmt.Sprint([]int64{lost.ID}); got != want {
		t.Errorf("undelivered: %s, not %s", got, want)
	}
	if got, want := ids(s.PollsOf(t.Context(), chat, folder, msg.PollOpen, 1<<62, 2)), fmt.Sprint([]int64{lost.ID, soon.ID}); got != want {
		t.Errorf("open: %s, not %s", got, want)
	}
	if got := ids(s.PollsOf(t.Context(), chat, "other", msg.PollOpen, 1<<62, 2)); got != "[]" {
		t.Errorf("of another group: %s", got)
	}
	if p := must(s.PollOfMessage(t.Context(), soon.MessageID))(t); p == nil || p.ID != soon.ID || p.Topic != "#lunch" {
		t.Errorf("by message: %+v", p)
	}
}

func TestPollRef_NamesTheMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, chat, "")
	sends := func() bool {
		of := must(s.PollsSending(t.Context(), "telegram", chat))(t)
		if all := must(s.PollsSending(t.Context(), "telegram", ""))(t); !slices.Equal(of, all) || len(must(s.PollsSending(t.Context(), "telegram", "telegram:-9"))(t)) > 0 {
			t.Errorf("of its chat %v, of all %v", of, all)
		}
		return slices.Equal(of, []int64{p.MessageID})
	}
	if sends() {
		t.Error("a queued poll is being sent")
	}
	write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(p.MessageID, 1, 100) })
	if !sends() {
		t.Error("a claimed poll is not being sent")
	}
	write(t, s, func(tx *store.Tx) error {
		return tx.PutDelivery(store.Delivery{MessageID: p.MessageID, State: msg.OutQueued, Attempts: 1, NotBefore: 1 << 50, ErrorClass: msg.Transient}, 1)
	})
	if sends() {
		t.Error("a poll that waits for its next attempt is being sent")
	}
	for _, ref := range []string{"61", "61", "62"} { // a second copy has another id
		write(t, s, func(tx *store.Tx) error { return tx.PutPollRef("teled", ref, p.MessageID) })
	}
	for ref, want := range map[string]bool{"61": true, "62": true, "63": false} {
		if m := must(s.MessageByPollRef(t.Context(), "teled", ref))(t); (m != nil && m.ID == p.MessageID) != want {
			t.Errorf("%s: %+v", ref, m)
		}
	}
	if must(s.VotesWaiting(t.Context(), chat, 5))(t) {
		t.Error("votes wait in an empty chat")
	}
	stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Verb: msg.VerbVote, Content: "{}", Timestamp: 5, ReceivedAt: 9})
	if !must(s.VotesWaiting(t.Context(), chat, 5))(t) || must(s.VotesWaiting(t.Context(), chat, 4))(t) {
		t.Error("votes wait up to their time")
	}
}

// The counts in SQL are those of msg.Poll.Tally, also of votes that programs of others wrote.
func TestPollResult_IsTheTally(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	for _, multiple := range []bool{false, true} {
		p := poll(t, s, chat, "")
		storetest.Exec(t, path, `UPDATE polls SET multiple = ? WHERE id = ?`, map[bool]int{true: 1}[multiple], p.ID)
		for i, options := range []string{"[1]", "[2,1]", "[1,2]", "[]", "[9]", "[0,-1]", `{"0":1}`, `"x"`, "7", "null", "[2]"} {
			storetest.Exec(t, path, `INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (?, ?, ?, ?, ?)`,
				p.ID, fmt.Sprintf("telegram:%d", i), []string{"", "Ann"}[i%2], options, 100-i)
		}
		p = must(s.Poll(t.Context(), p.ID))(t)
		same(t, fmt.Sprintf("multiple %t", multiple), must(s.PollResult(t.Context(), p))(t), p.Poll.Tally(must(s.PollVotes(t.Context(), p.ID))(t)))
		first := must(s.PollVoters(t.Context(), p, 2))(t)
		want := []string{"Ann", "telegram:0"} // of [2,1] and [1]
		if multiple {
			want = []string{"telegram:2", "Ann"} // of [1,2] and [2,1]
		}
		if !slices.Equal(first[0], want) {
			t.Errorf("multiple %t: voters %q, want %q", multiple, first, want)
		}
	}
}
