package rows_test

import (
	"fmt"
	"slices"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestAttachmentPaths(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var want []string
	for i := range 5 {
		m := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In}
		if i%2 == 0 {
			m.Attachments = []msg.Attachment{{Path: fmt.Sprintf("media/%d", i)}, {Path: fmt.Sprintf("media/%d-b", i)}}
			want = append(want, m.Attachments[0].Path, m.Attachments[1].Path)
		}
		storetest.Stored(t, s, m)
	}
	var got []string
	for after := int64(0); ; {
		paths, next, err := rows.AttachmentPaths(t.Context(), s.Reader, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if next == 0 {
			break
		}
		after, got = next, append(got, paths...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
