package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/rows"
	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/chatmove"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// poll stores an open poll of a chat with the options a, b and c. Its message is delivered unless the
// platform id is "".
func poll(t testing.TB, s *store.Store, chatJID, platformID string, set ...func(*msg.StoredPoll)) *msg.StoredPoll {
	t.Helper()
	p := &msg.StoredPoll{
		Folder: storetest.Folder, ChatJID: chatJID, Topic: "#lunch", CreatedAt: 100,
		Poll: msg.Poll{Question: "Lunch?", Options: []string{"a", "b", "c"}},
	}
	for _, f := range set {
		f(p)
	}
	m := &msg.Message{ChatJID: chatJID, Direction: msg.Out, Kind: msg.KindPoll, Content: p.Poll.JSON(), OutState: msg.OutQueued, ReceivedAt: 100}
	storetest.Write(t, s, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		p.MessageID = m.ID
		if err := rows.PutPoll(tx, p); err != nil || platformID == "" {
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
	return s.Write(t.Context(), func(tx *store.Tx) error { return rows.Vote(tx, id, voter, "Name of "+voter, &v, at) })
}

func multiple(p *msg.StoredPoll) { p.Poll.Multiple = true }

func TestVote_LaterOne_Replaces(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, storetest.Chat, "9", multiple)
	for i, v := range []msg.Vote{
		{Options: []int{1, 2}}, {Options: []int{3}}, {Options: []int{1}, Change: msg.VoteAdds}, {Options: []int{1}, Change: msg.VoteAdds},
		{Options: []int{3}, Change: msg.VoteRemoves},
	} {
		if err := vote(t, s, p.ID, "telegram:7", v, int64(200+i)); err != nil {
			t.Fatal(err)
		}
	}
	want := []msg.PollVote{{Voter: "telegram:7", Name: "Name of telegram:7", Options: []int{1}, At: 204}}
	differ(t, "got", storetest.Must(factrows.PollVotes(t.Context(), s.Reader, p.ID))(t), want)
	if err := vote(t, s, p.ID, "telegram:7", msg.Vote{}, 300); err != nil {
		t.Fatal(err)
	}
	if votes := storetest.Must(factrows.PollVotes(t.Context(), s.Reader, p.ID))(t); len(votes) != 0 {
		t.Errorf("after the withdrawal: %+v", votes)
	}
}

func TestVote_ThatDoesNotCount_IsStale(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, storetest.Chat, "9")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, 500) })
	if err := vote(t, s, p.ID, "a", msg.Vote{Options: []int{1}}, 500); err != nil {
		t.Errorf("a vote that arrived before the end: %v", err)
	}
	tests := map[string]error{
		"after the end":   vote(t, s, p.ID, "b", msg.Vote{Options: []int{1}}, 501),
		"unknown option":  vote(t, s, p.ID, "b", msg.Vote{Options: []int{4}}, 400),
		"option below 1":  vote(t, s, p.ID, "b", msg.Vote{Options: []int{0}}, 400),
		"of no poll":      vote(t, s, p.ID+1, "b", msg.Vote{Options: []int{1}}, 400),
		"a second end":    s.Write(t.Context(), func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, 600) }),
		"many of them":    vote(t, s, p.ID, "b", msg.Vote{Options: []int{1, 1, 1, 1}}, 400),
		"result is known": nil,
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.EndPoll(tx, p.ID, &msg.PollResult{Counts: []int{1, 0, 0}, Voters: 1}, 510)
	})
	tests["result is known"] = vote(t, s, p.ID, "b", msg.Vote{Options: []int{1}}, 400)
	for name, err := range tests {
		if !errors.Is(err, store.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := storetest.Must(rows.Poll(t.Context(), s.Reader, p.ID))(t); got.ClosedAt != 500 || got.EndPending || got.Poll.Result.Voters != 1 {
		t.Errorf("the poll: %+v", got)
	}
}

// end calls QueuePollEnd and returns the outbound rows after the poll's.
func end(t testing.TB, s *store.Store, p *msg.StoredPoll) (ended bool, list []*msg.Message) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) (err error) { ended, err = rows.QueuePollEnd(tx, p.ID, 700); return err })
	for id := p.MessageID + 1; ; id++ {
		m := storetest.Must(s.Message(t.Context(), id))(t)
		if m == nil {
			return ended, list
		}
		list = append(list, m)
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
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, 500) })
		for range 2 {
			ended, rows := end(t, s, p)
			if !ended || len(rows) != 1 || rows[0].Kind != msg.KindPoll || rows[0].TargetID != "9" || rows[0].OutState != msg.OutQueued {
				t.Fatalf("%s: ended %v with %+v", jid, ended, rows)
			}
			closing := storetest.Must(msg.ParsePoll(rows[0].Content))(t)
			differ(t, fmt.Sprintf("%s:", jid), closing.Result, &msg.PollResult{Counts: []int{0, 1, 0}, Voters: 1})
		}
		if got := storetest.Must(rows.Poll(t.Context(), s.Reader, p.ID))(t); got.EndPending || (got.Poll.Result == nil) != native {
			t.Errorf("%s: %+v", jid, got)
		}
	}
}

func TestQueuePollEnd_MessageThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, storetest.Chat, "")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, 500) })
	if ended, rows := end(t, s, p); ended || len(rows) != 0 {
		t.Errorf("before the delivery: %v, %+v", ended, rows)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(p.MessageID, 1, 100) })
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(p.MessageID, msg.OutFailed, "") })
	if ended, rows := end(t, s, p); !ended || len(rows) != 0 {
		t.Errorf("never delivered: %v, %+v", ended, rows)
	}

	for what, forget := range map[string]func(*store.Tx) error{
		"after the move":  func(tx *store.Tx) error { return chatmove.Move(tx, "telegram:-5", "telegram:-1005", 600) },
		"of a former bot": func(tx *store.Tx) error { return errors.Join(tx.PutBot("teled", "1", 1), tx.PutBot("teled", "2", 2)) },
	} {
		s := storetest.Open(t)
		lost := poll(t, s, "telegram:-5", "9")
		if err := vote(t, s, lost.ID, "a", msg.Vote{Options: []int{2}}, 300); err != nil {
			t.Fatal(err)
		}
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, lost.ID, 500) })
		storetest.Write(t, s, forget)
		if ended, rows := end(t, s, lost); !ended || len(rows) != 0 {
			t.Errorf("%s: %v, %+v", what, ended, rows)
		}
		if got := storetest.Must(rows.Poll(t.Context(), s.Reader, lost.ID))(t).Poll.Result; !cmp.Equal(got, &msg.PollResult{Counts: []int{0, 1, 0}, Voters: 1}) {
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
		for _, p := range storetest.Must(all, err)(t) {
			list = append(list, p.ID)
		}
		return fmt.Sprint(list)
	}
	closesAt := func(at int64) func(*msg.StoredPoll) { return func(p *msg.StoredPoll) { p.Poll.ClosesAt = at } }
	late, soon, never := poll(t, s, storetest.Chat, "1", closesAt(900)), poll(t, s, storetest.Chat, "2", closesAt(400)), poll(t, s, storetest.Chat, "3")
	lost := poll(t, s, storetest.Chat, "")
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(lost.MessageID, 1, 100) })
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(lost.MessageID, msg.OutFailed, "") })
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, never.ID, 500) })

	of := func(folder string) string {
		return ids(rows.PollsOf(t.Context(), s.Reader, storetest.Chat, folder, msg.PollOpen, 1<<62, 2))
	}
	for _, tt := range []struct {
		what, got string
		want      []int64
	}{
		{"due", ids(rows.PollsDue(t.Context(), s.Reader, 900, 10)), []int64{soon.ID, late.ID}},
		{"due earlier", ids(rows.PollsDue(t.Context(), s.Reader, 899, 10)), []int64{soon.ID}},
		{"ending", ids(rows.PollsEnding(t.Context(), s.Reader, 0, 10)), []int64{never.ID}},
		{"undelivered", ids(rows.PollsUndelivered(t.Context(), s.Reader, 0, 10)), []int64{lost.ID}},
		{"open", of(storetest.Folder), []int64{lost.ID, soon.ID}},
		{"of another group", of("other"), nil},
	} {
		if want := fmt.Sprint(tt.want); tt.got != want {
			t.Errorf("%s: %s, not %s", tt.what, tt.got, want)
		}
	}
	if p := storetest.Must(factrows.PollOfMessage(t.Context(), s.Reader, soon.MessageID))(t); p == nil || p.ID != soon.ID || p.Topic != "#lunch" {
		t.Errorf("by message: %+v", p)
	}
}

func TestPollRef_NamesTheMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, storetest.Chat, "")
	sends := func() bool {
		of := storetest.Must(adapterrows.PollsSending(t.Context(), s.Reader, "telegram", storetest.Chat))(t)
		if all := storetest.Must(adapterrows.PollsSending(t.Context(), s.Reader, "telegram", ""))(t); !slices.Equal(of, all) || len(storetest.Must(adapterrows.PollsSending(t.Context(), s.Reader, "telegram", "telegram:-9"))(t)) > 0 {
			t.Errorf("of its chat %v, of all %v", of, all)
		}
		return slices.Equal(of, []int64{p.MessageID})
	}
	if sends() {
		t.Error("a queued poll is being sent")
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(p.MessageID, 1, 100) })
	if !sends() {
		t.Error("a claimed poll is not being sent")
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.PutDelivery(store.Delivery{MessageID: p.MessageID, State: msg.OutQueued, Attempts: 1, NotBefore: 1 << 50, ErrorClass: msg.Transient}, 1)
	})
	if sends() {
		t.Error("a poll that waits for its next attempt is being sent")
	}
	for _, ref := range []string{"61", "61", "62"} { // a second copy has another id
		storetest.Write(t, s, func(tx *store.Tx) error { return adapterrows.PutPollRef(tx, "teled", ref, p.MessageID) })
	}
	for ref, want := range map[string]bool{"61": true, "62": true, "63": false} {
		if m := storetest.Must(adapterrows.MessageByPollRef(t.Context(), s.Reader, "teled", ref))(t); (m != nil && m.ID == p.MessageID) != want {
			t.Errorf("%s: %+v", ref, m)
		}
	}
	if storetest.Must(rows.VotesWaiting(t.Context(), s.Reader, storetest.Chat, 5))(t) {
		t.Error("votes wait in an empty chat")
	}
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: msg.VerbVote, Content: "{}", Timestamp: 5, ReceivedAt: 9})
	if !storetest.Must(rows.VotesWaiting(t.Context(), s.Reader, storetest.Chat, 5))(t) || storetest.Must(rows.VotesWaiting(t.Context(), s.Reader, storetest.Chat, 4))(t) {
		t.Error("votes wait up to their time")
	}
}

// Of several options in a poll that takes one, the last counts, also in votes that programs of others wrote.
func TestPollResult_IsTheTally(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	for _, multiple := range []bool{false, true} {
		p := poll(t, s, storetest.Chat, "")
		storetest.Exec(t, path, `UPDATE polls SET multiple = ? WHERE id = ?`, map[bool]int{true: 1}[multiple], p.ID)
		for i, options := range []string{"[1]", "[2,1]", "[1,2]", "[]", "[9]", "[0,-1]", `{"0":1}`, `"x"`, "7", "null", "[2]"} {
			storetest.Exec(t, path, `INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (?, ?, ?, ?, ?)`,
				p.ID, fmt.Sprintf("telegram:%d", i), []string{"", "Ann"}[i%2], options, 100-i)
		}
		p = storetest.Must(rows.Poll(t.Context(), s.Reader, p.ID))(t)
		tally := &msg.PollResult{Counts: make([]int, len(p.Poll.Options))}
		for _, v := range storetest.Must(factrows.PollVotes(t.Context(), s.Reader, p.ID))(t) {
			counted := v.Options
			if !multiple && len(counted) > 1 {
				counted = counted[len(counted)-1:]
			}
			for _, n := range counted {
				if n >= 1 && n <= len(tally.Counts) {
					tally.Counts[n-1]++
				}
			}
			tally.Voters += min(len(v.Options), 1)
		}
		differ(t, fmt.Sprintf("multiple %t", multiple), storetest.Must(factrows.PollResult(t.Context(), s.Reader, p))(t), tally)
		first := storetest.Must(rows.PollVoters(t.Context(), s.Reader, p, 2))(t)
		want := []string{"Ann", "telegram:0"} // of [2,1] and [1]
		if multiple {
			want = []string{"telegram:2", "Ann"} // of [1,2] and [2,1]
		}
		if !slices.Equal(first[0], want) {
			t.Errorf("multiple %t: voters %q, want %q", multiple, first, want)
		}
	}
}
