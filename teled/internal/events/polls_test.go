package events

import (
	"testing"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// A vote whose poll is being sent holds up no update, and is stored when the poll is known, also after a restart.
func TestListen_VoteBeforeItsPollIsKnown_WaitsBesideUpdates(t *testing.T) {
	f := newFixture(t, `{"update_id":7,"poll_answer":{"poll_id":"61","user":{"id":8,"first_name":"Ada"},"option_ids":[1]}},`+
		`{"update_id":8,"message":{"message_id":2,"date":1760000000,"chat":{"id":-5,"type":"group","title":"T"},"from":{"id":8,"first_name":"Ada"},"text":"hi"}}`)
	poll := &msg.Message{ChatJID: chat, Direction: msg.Out, Kind: msg.KindPoll, Content: "{}", OutState: msg.OutQueued}
	write := func(do func(tx *store.Tx) error) {
		t.Helper()
		if err := f.store.Write(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(poll); return err })
	write(func(tx *store.Tx) error { return tx.ClaimOutbound(poll.ID, 1, 1) })
	f.run()
	f.expectStored("9", "hi")

	write(func(tx *store.Tx) error {
		if err := rows.PutPollRef(tx, "teled", "61", poll.ID); err != nil {
			return err
		}
		return tx.SettleOutbound(poll.ID, msg.OutSent, "12")
	})
	f.run()
	f.expectStored("9", "hi", `{"options":[2],"row":1}`)
}
