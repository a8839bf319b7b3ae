package rows_test

import (
	"cmp"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestRecentThreads_OfChatSinceTime(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for i, m := range []msg.Message{
		{ThreadID: "old", ReceivedAt: 100}, {ThreadID: "late", ReceivedAt: 100}, {ThreadID: "early", ReceivedAt: 200}, {ReceivedAt: 300},
		{ThreadID: "late", ReceivedAt: 300}, {ThreadID: "old", ReceivedAt: 300, Verb: msg.VerbReaction}, {ThreadID: "elsewhere", ReceivedAt: 300, ChatJID: "slack:C2"},
	} {
		m.PlatformID, m.Direction, m.ChatJID = fmt.Sprint(i), msg.In, cmp.Or(m.ChatJID, "slack:C1")
		storetest.Write(t, s, func(tx *store.Tx) error { _, _, err := tx.PutMessage(&m); return err })
	}
	if diff := gocmp.Diff([]string{"early", "late"}, storetest.Must(rows.RecentThreads(t.Context(), s.Reader, "slack:C1", 200))(t)); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
}
