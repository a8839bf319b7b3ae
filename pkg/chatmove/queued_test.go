package chatmove_test

import (
	"testing"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestStopChat_RowsOfFormerAddressStillMove_EndsThemToo(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const n, undecided = 1200, 1100
	storetest.OldChat(t, s, oldJID, n, undecided)
	running := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Topic = oldJID, "#run" })
	gatedtest.Begun(t, s, running)
	storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, oldJID, newJID, 50) })
	command := storetest.Inbound(t, s, newJID, "/stop").ID
	storetest.Write(t, s, func(tx *store.Tx) error {
		_, _, err := gatedtest.StopChat(tx, gatedtest.Stop{ChatJID: newJID, BeforeMessage: command}, 500)
		return err
	})
	moving := true
	for stops := storetest.Must(gatedtest.Stops(t.Context(), s.Reader, ""))(t); len(stops) > 0; stops = storetest.Must(gatedtest.Stops(t.Context(), s.Reader, ""))(t) {
		if moving { // a page of the move between two of the /stop
			storetest.Write(t, s, func(tx *store.Tx) (err error) { moving, err = chatmove.MoveSome(tx, oldJID, 51); return err })
		}
		storetest.Write(t, s, func(tx *store.Tx) error { _, _, err := gatedtest.ContinueStop(tx, stops[0], 600); return err })
	}
	for what, query := range map[string]string{
		"open turns":     `SELECT count(*) FROM turns WHERE state IN ('queued', 'running')`,
		"undecided rows": `SELECT count(*) FROM messages WHERE disposition IS NULL AND direction = 'in' AND content <> '/stop'`,
	} {
		if got := storetest.Value[int](t, s, query); got != 0 {
			t.Errorf("%d %s", got, what)
		}
	}
}
