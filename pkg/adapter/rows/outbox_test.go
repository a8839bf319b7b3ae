package rows_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// outbound stores an outbound row in a state, "" for none.
func outbound(t testing.TB, s *store.Store, chatJID, thread string, state msg.OutState) *msg.Message {
	t.Helper()
	return storetest.Stored(t, s, &msg.Message{ChatJID: chatJID, ThreadID: thread, Direction: msg.Out, OutState: state, Content: "hi"})
}

var outStates = []msg.OutState{"", msg.OutQueued, msg.OutSending, msg.OutSent, msg.OutAmbiguous, msg.OutFailed, msg.OutCancelled}

func TestOutboxLanes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if lanes := storetest.Must(rows.OutboxLanes(t.Context(), s.Reader, "telegram"))(t); lanes != nil {
		t.Errorf("lanes of an empty table: %v", lanes)
	}
	for _, state := range outStates {
		outbound(t, s, "telegram:"+string(state), "", state)
	}
	storetest.Inbound(t, s, "telegram:in", "hi")
	for range 2 {
		outbound(t, s, "telegram:queued", "7", msg.OutQueued)
	}
	outbound(t, s, "telegrams:1", "", msg.OutQueued)
	outbound(t, s, "web:telegram:1", "", msg.OutQueued)
	got := storetest.Must(rows.OutboxLanes(t.Context(), s.Reader, "telegram"))(t)
	slices.SortFunc(got, func(a, b store.Lane) int {
		return strings.Compare(a.ChatJID+" "+a.ThreadID, b.ChatJID+" "+b.ThreadID)
	})
	want := []store.Lane{{ChatJID: "telegram:queued"}, {ChatJID: "telegram:queued", ThreadID: "7"}, {ChatJID: "telegram:sending"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
}

func TestNextOutbound(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	lane := store.Lane{ChatJID: storetest.Chat, ThreadID: "7"}
	if m, err := rows.NextOutbound(t.Context(), s.Reader, lane); m != nil || err != nil {
		t.Errorf("in an empty table: %+v, %v", m, err)
	}
	for _, state := range []msg.OutState{"", msg.OutSent, msg.OutAmbiguous, msg.OutFailed, msg.OutCancelled} {
		outbound(t, s, storetest.Chat, "7", state)
	}
	outbound(t, s, storetest.Chat, "", msg.OutQueued)
	outbound(t, s, "telegram:-2", "7", msg.OutQueued)
	first, second := outbound(t, s, storetest.Chat, "7", msg.OutQueued), outbound(t, s, storetest.Chat, "7", msg.OutQueued)
	for _, step := range []struct {
		want *msg.Message
		then func(*store.Tx) error
	}{
		{first, func(tx *store.Tx) error { return tx.ClaimOutbound(first.ID, 1, 1) }},
		{first, func(tx *store.Tx) error { return tx.SettleOutbound(first.ID, msg.OutSent, "") }},
		{second, func(tx *store.Tx) error {
			return tx.Exec(`UPDATE messages SET out_state = 'cancelled' WHERE id = ?`, second.ID)
		}},
	} {
		if got := storetest.Must(rows.NextOutbound(t.Context(), s.Reader, lane))(t); got == nil || got.ID != step.want.ID || got.Content != "hi" {
			t.Errorf("next is %+v, want row %d", got, step.want.ID)
		}
		storetest.Write(t, s, step.then)
	}
	if m := storetest.Must(rows.NextOutbound(t.Context(), s.Reader, lane))(t); m != nil {
		t.Errorf("next is %+v", m)
	}
}
