package chatmove_test

import (
	"testing"

	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestMoveChat_ParkedRows_MoveWithTheChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for range 1100 { // more than one commit moves
		storetest.Inbound(t, s, storetest.Chat, "undecided")
	}
	one := storetest.Park(t, s, storetest.Chat, "one")
	storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, storetest.Chat, "telegram:-1001", 20) })
	if m := storetest.Must(s.Message(t.Context(), one.ID))(t); m.ChatJID != "telegram:-1001" || m.Disposition != msg.Onboarding {
		t.Errorf("the row is %+v", m)
	}
}
