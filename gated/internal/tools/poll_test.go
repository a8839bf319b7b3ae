package tools

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestPollCreate_StoresPollWithItsMessage(t *testing.T) {
	f := parallel(t)
	closes := f.clock.Add(time.Hour)
	out := decode[pollCreateOut](t, f.works("poll_create", fmt.Sprintf(
		`{"question":"Where\n do we eat, hunter2?","options":["a","b"],"multiple":true,"closes_at":%q}`, closes.Format(time.RFC3339))))
	m, err := f.st.Message(t.Context(), out.MessageID)
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	want := msg.Poll{Question: "Where do we eat, [redacted]?", Options: []string{"a", "b"}, Multiple: true, ClosesAt: closes.UnixMilli()}
	if m.Kind != msg.KindPoll || m.Content != want.JSON() || m.OutState != msg.OutQueued || m.Source != msg.SourceTool || m.ChatJID != chat {
		t.Errorf("the message: %+v", m)
	}
	p, err := rows.Poll(t.Context(), f.st.Reader, out.PollID)
	if err != nil || p == nil || p.MessageID != m.ID || p.Folder != folder || p.ChatJID != chat {
		t.Fatalf("%+v, %v", p, err)
	}
	if diff := cmp.Diff(want, p.Poll); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, ok := msg.PollLimitsOf("group:acme"); ok {
		t.Error("groups among themselves have polls")
	}
}

func TestPollClose_Twice_ClosesOnce(t *testing.T) {
	f := parallel(t)
	for range 2 {
		out := decode[pollCloseOut](t, f.works("poll_close", `{"poll_id":OWN_POLL}`))
		if out.State != "closed" || out.PollID != f.ownPoll {
			t.Errorf("%+v", out)
		}
		f.clock = f.clock.Add(time.Minute)
	}
	p, err := rows.Poll(t.Context(), f.st.Reader, f.ownPoll)
	if err != nil || p.State != msg.PollClosed || !p.EndPending || p.ClosedAt != f.clock.Add(-2*time.Minute).UnixMilli() {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestPollList_CountsAndNamesVoters(t *testing.T) {
	f := parallel(t)
	const voters = 30
	f.write(func(tx *store.Tx) error {
		for i := range voters {
			vote := &msg.Vote{Options: []int{1}}
			if err := rows.Vote(tx, f.ownPoll, fmt.Sprintf("telegram:%d", i), fmt.Sprintf("Voter\n%d", i), vote, int64(100+i)); err != nil {
				return err
			}
		}
		return rows.Vote(tx, f.ownPoll, "telegram:0", "Voter 0", &msg.Vote{Options: []int{2}}, 500)
	})
	out := decode[pollListOut](t, f.works("poll_list", `{}`))
	if len(out.Polls) != 1 || out.More {
		t.Fatalf("%+v", out)
	}
	p := out.Polls[0]
	if p.PollID != f.ownPoll || p.Voters != voters || p.State != "open" || p.Options[0].Votes != voters-1 || p.Options[1].Votes != 1 {
		t.Errorf("%+v", p)
	}
	if len(p.Options[0].Voters) != maxVoterNames || p.Options[0].Voters[0] != "Voter 1" || p.Options[1].Voters[0] != "Voter 0" {
		t.Errorf("voters: %q, %q", p.Options[0].Voters, p.Options[1].Voters)
	}

	f.write(func(tx *store.Tx) error { return rows.ClosePoll(tx, f.ownPoll, 600) })
	f.write(func(tx *store.Tx) error {
		return rows.EndPoll(tx, f.ownPoll, &msg.PollResult{Counts: []int{40, 2}, Voters: 42}, 601)
	})
	if out := decode[pollListOut](t, f.works("poll_list", `{}`)); len(out.Polls) != 0 {
		t.Errorf("open after the end: %+v", out)
	}
	closed := decode[pollListOut](t, f.works("poll_list", `{"state":"closed"}`)).Polls[0]
	if closed.Voters != 42 || closed.Options[0].Votes != 40 || closed.ClosedAt == "" {
		t.Errorf("the platform's counts: %+v", closed)
	}
}

func TestPollCreate_TooManyOpenPolls_IsRefusedUntilOneIsClosed(t *testing.T) {
	f := parallel(t)
	for i := range maxPolls - 1 { // with OWN_POLL as many as may be
		f.works("poll_create", fmt.Sprintf(`{"question":"Number %d?","options":["a","b"]}`, i))
	}
	const further = `{"question":"One more?","options":["a","b"]}`
	f.refused("poll_create", further, "poll_close")
	f.works("poll_close", `{"poll_id":OWN_POLL}`)
	f.works("poll_create", further)
}
