package rows_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/onbod/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestFoldersEver_RegisteredAndRemoved(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, f := range []string{"acme", "acme/eng"} {
		storetest.Write(t, s, func(tx *store.Tx) error {
			_, err := tx.PutGroup(&msg.Group{Folder: f, Config: json.RawMessage(`{}`)})
			return err
		})
	}
	turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Folder = "acme/gone" })
	frame := gatedtest.Answer(gatedtest.Begun(t, s, turn), turn, "ok")
	frame.SessionID = "s"
	gatedtest.StoreReply(t, s, frame, 300)
	gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Folder = "acme/new" })
	if diff := cmp.Diff([]string{"acme", "acme/eng", "acme/gone", "acme/new"}, storetest.Must(gatedtest.FoldersEver(t.Context(), s.Reader))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for folder, want := range map[string]bool{"acme": true, "acme/gone": true, "acme/new": false, "acme/other": false} {
		if used := storetest.Must(rows.FolderUsed(t.Context(), s.Reader, folder))(t); used != want {
			t.Errorf("%s used: %t", folder, used)
		}
	}
}
