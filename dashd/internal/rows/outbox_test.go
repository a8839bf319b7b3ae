package rows_test

import (
	"testing"

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
