package rows_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPosts_OfSpan_HaveTheirChanges(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, m := range []msg.Message{
		{PlatformID: "10.5"}, {PlatformID: "10.4"}, {PlatformID: "10.5:e:11.2", Verb: msg.VerbEdit}, {PlatformID: "10.6", ThreadID: "10.4"},
		{PlatformID: "10.7", ThreadID: "10.4"}, {PlatformID: "m:join:7"}, {}, {PlatformID: "10.5", ChatJID: "slack:C2"},
		{PlatformID: "10.9", ThreadID: "10.4", Verb: msg.VerbReaction},
	} {
		if m.Direction = msg.In; m.ChatJID == "" {
			m.ChatJID = "slack:C1"
		}
		storetest.Write(t, s, func(tx *store.Tx) error { _, _, err := tx.PutMessage(&m); return err })
	}
	for _, tt := range []struct {
		from, before string
		limit        int
		want         []string
	}{
		{"10.4", "10.6;", 9, []string{"10.4", "10.5", "10.5:e:11.2", "10.6"}},
		{"10.5", "10.6", 9, []string{"10.5", "10.5:e:11.2"}},
		{"10.4", "10.9", 2, []string{"10.4", "10.5"}},
		{"2", "3", 9, nil},
	} {
		var got []string
		for _, m := range storetest.Must(rows.Posts(t.Context(), s.Reader, "slack:C1", tt.from, tt.before, tt.limit))(t) {
			got = append(got, m.PlatformID)
		}
		if diff := gocmp.Diff(tt.want, got); diff != "" {
			t.Errorf("from %s before %s (-want +got):\n%s", tt.from, tt.before, diff)
		}
	}
	if diff := gocmp.Diff([]string{"10.7", "10.6"}, storetest.Must(rows.ThreadPosts(t.Context(), s.Reader, "slack:C1", "10.4", 2))(t)); diff != "" {
		t.Errorf("thread (-want +got):\n%s", diff)
	}
}
