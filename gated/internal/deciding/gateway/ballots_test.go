package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// poll stores an open poll of a chat, whose message is delivered with an id.
func (h *harness) poll(chat, id string, multiple bool, change ...func(*msg.StoredPoll)) *msg.StoredPoll {
	h.t.Helper()
	p := &msg.StoredPoll{Folder: "main", ChatJID: chat, CreatedAt: 1, Poll: msg.Poll{Question: "Lunch?", Options: []string{"a", "b", "c"}, Multiple: multiple}}
	for _, f := range change {
		f(p)
	}
	h.write(func(tx *store.Tx) error {
		m := &msg.Message{ChatJID: chat, Direction: msg.Out, Kind: msg.KindPoll, Content: p.Poll.JSON(), OutState: msg.OutQueued}
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		p.MessageID = m.ID
		if err := rows.PutPoll(tx, p); err != nil {
			return err
		}
		if err := tx.ClaimOutbound(m.ID, 1, 1); err != nil {
			return err
		}
		return tx.SettleOutbound(m.ID, msg.OutSent, id)
	})
	return p
}

// vote stores a row about the message with an id.
func (h *harness) vote(chat, target, voter, v, content string) *msg.Message {
	h.t.Helper()
	return h.put(content, verb(v), in(chat), func(m *msg.Message) { m.Sender, m.SenderName, m.TargetID = voter, "Voter "+voter, target })
}

func (h *harness) tally(p *msg.StoredPoll) *msg.PollResult {
	h.t.Helper()
	votes, err := factrows.PollVotes(h.t.Context(), h.st.Reader, p.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return p.Poll.Tally(votes)
}

func TestBallot_Votes_AreCountedWithoutATurn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.poll(dm, "77", false)
	byTarget := h.vote(dm, "77", "telegram:1", msg.VerbVote, `{"options":[2]}`)
	byRow := h.vote(dm, "", "telegram:2", msg.VerbVote, fmt.Sprintf(`{"options":[3],"row":%d}`, p.MessageID))
	again := h.vote(dm, "77", "telegram:1", msg.VerbVote, `{"options":[1]}`)
	h.step()
	for _, m := range []*msg.Message{byTarget, byRow, again} {
		h.is(m, "observed/vote ")
	}
	if diff := cmp.Diff(&msg.PollResult{Counts: []int{1, 0, 1}, Voters: 2}, h.tally(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if turns := h.dispatched(); len(turns) != 0 {
		t.Errorf("turns: %v", turns)
	}
	withdrawn := h.vote(dm, "77", "telegram:1", msg.VerbVote, `{"options":[]}`)
	h.step()
	h.is(withdrawn, "observed/vote ")
	if got := h.tally(p); got.Voters != 1 || got.Counts[0] != 0 {
		t.Errorf("after a withdrawal: %+v", got)
	}
}

func TestBallot_ThatDoesNotCount_IsDroppedWithAReason(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.poll(dm, "77", false)
	elsewhere := h.poll("telegram:-9", "78", false)
	tests := map[*msg.Message]string{
		h.vote(dm, "99", "telegram:1", msg.VerbVote, `{"options":[2]}`):                                          "dropped/poll_unknown ",
		h.vote(dm, "", "telegram:1", msg.VerbVote, `{"options":[2]}`):                                            "dropped/poll_unknown ",
		h.vote(dm, "77", "telegram:1", msg.VerbVote, `{"options":[4]}`):                                          "dropped/poll_unknown ",
		h.vote(dm, "77", "telegram:1", msg.VerbVote, `{"options":[-1]}`):                                         "dropped/poll_unknown ",
		h.vote(dm, "77", "telegram:1", msg.VerbVote, `vote`):                                                     "dropped/poll_unknown ",
		h.vote(dm, "", "telegram:1", msg.VerbVote, fmt.Sprintf(`{"options":[1],"row":%d}`, elsewhere.MessageID)): "dropped/poll_unknown ",
		h.vote(dm, "77", "telegram:1", msg.VerbPollEnd, `x`):                                                     "dropped/poll_unknown ",
	}
	h.step()
	for m, want := range tests {
		h.is(m, want)
	}
	h.write(func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, h.clock.UnixMilli()-1) })
	late := h.vote(dm, "77", "telegram:1", msg.VerbVote, `{"options":[2]}`)
	h.step()
	h.is(late, "dropped/poll_closed ")
	if got := h.tally(p); got.Voters != 0 {
		t.Errorf("counted: %+v", got)
	}
}

// The poll is still open in the rows: gated was down, and its closer has not looked yet.
func TestBallot_AfterClosesAt_DoesNotCount(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	closes := h.clock.UnixMilli() + 1000
	p := h.poll(dm, "77", false, func(p *msg.StoredPoll) { p.Poll.ClosesAt = closes })
	cast := func(voter string, at, arrived int64) *msg.Message {
		return h.put(`{"options":[1]}`, verb(msg.VerbVote), func(m *msg.Message) {
			m.Sender, m.TargetID, m.Timestamp, m.ReceivedAt = voter, "77", at, arrived
		})
	}
	tests := map[*msg.Message]string{
		cast("telegram:1", closes, closes):                     "observed/vote ",
		cast("telegram:2", closes+1, closes+1):                 "dropped/poll_closed ",
		cast("telegram:3", closes-500, closes+3_600_000):       "observed/vote ", // the adapter was down
		cast("telegram:4", closes+9_000_000, closes-500):       "observed/vote ", // the platform's clock is ahead
		cast("telegram:5", closes+3_000_000, closes+3_600_000): "dropped/poll_closed ",
		cast("telegram:6", 0, closes+1):                        "dropped/poll_closed ",
	}
	h.clock = h.clock.Add(2 * time.Hour)
	h.step()
	for m, want := range tests {
		h.is(m, want)
	}
	if diff := cmp.Diff(&msg.PollResult{Counts: []int{3, 0, 0}, Voters: 3}, h.tally(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Votes of strangers in an unknown chat leave no chat behind, and ask for no request.
func TestBallot_UnknownChat_MakesNoChat(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.vote("telegram:4711", "99", "telegram:4711", msg.VerbVote, `{"options":[2]}`)
	h.step()
	h.is(m, "dropped/poll_unknown ")
	if c, err := h.st.Chat(t.Context(), "telegram:4711"); c != nil || err != nil {
		t.Errorf("the chat: %+v, %v", c, err)
	}
	if n := h.routd.requests(); n != 0 {
		t.Errorf("%d questions to routd", n)
	}
}

func TestBallot_PlatformClosesPoll_StoresItsResult(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := h.poll(dm, "77", false)
	end := h.vote(dm, "77", "telegram:1", msg.VerbPollEnd, `{"result":{"counts":[0,5,1],"voters":6}}`)
	h.step()
	h.is(end, "observed/poll_end ")
	again := h.vote(dm, "77", "telegram:1", msg.VerbPollEnd, `{}`)
	h.step()
	h.is(again, "dropped/poll_closed ")
	got, err := rows.Poll(t.Context(), h.st.Reader, p.ID)
	if err != nil || got.State != msg.PollClosed || got.EndPending || got.Poll.Result == nil || got.Poll.Result.Voters != 6 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBallot_SlackReactions_AreVotes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const channel = "slack:C1"
	p := h.poll(channel, "1700.1", false)
	react := func(emoji string) *msg.Message {
		return h.vote(channel, "1700.1", "slack:U1", msg.VerbReaction, emoji)
	}
	steps := []struct {
		emoji string
		want  []int
	}{
		{"1️⃣", []int{1, 0, 0}}, {"3⃣", []int{0, 0, 1}}, {"-3⃣", []int{1, 0, 0}}, {"-1️⃣", []int{0, 0, 0}},
	}
	for _, s := range steps {
		m := react(s.emoji)
		h.step()
		h.is(m, "observed/vote ")
		if diff := cmp.Diff(s.want, h.tally(p).Counts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.emoji, diff)
		}
	}
	for _, emoji := range []string{"👍", "4️⃣"} { // ordinary reactions
		m := react(emoji)
		h.step()
		if got := h.row(m.ID); got.Reason == msg.ReasonVote || got.Reason == msg.ReasonPollUnknown {
			t.Errorf("%s: %s/%s", emoji, got.Disposition, got.Reason)
		}
	}
	native := h.poll("telegram:-9", "78", false)
	m := h.vote("telegram:-9", "78", "telegram:1", msg.VerbReaction, "1️⃣")
	h.step()
	if got := h.row(m.ID); got.Reason == msg.ReasonVote || h.tally(native).Voters != 0 {
		t.Errorf("a reaction to a native poll: %s/%s", got.Disposition, got.Reason)
	}
}
