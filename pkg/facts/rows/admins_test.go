package rows_test

import (
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestMembersForRow_Admins(t *testing.T) {
	s := storetest.Open(t)
	const elsewhere = "telegram:-77"
	turn := gatedtest.Queued(t, s, func(*msg.Turn) {})
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutAdmin(storetest.Chat, "telegram:7", true) })
	members := groupconfig.Members{Roles: groupconfig.Roles{Ask: groupconfig.Role{{Who: groupconfig.PlatformAdmins}}}}
	for name, tt := range map[string]struct {
		row  msg.Message
		want bool
	}{
		"an admin":                     {msg.Message{ChatJID: storetest.Chat, Sender: "telegram:7"}, true},
		"another user":                 {msg.Message{ChatJID: storetest.Chat, Sender: "telegram:8"}, false},
		"the admin, in another chat":   {msg.Message{ChatJID: elsewhere, Sender: "telegram:7"}, false},
		"an agent for the admin":       {msg.Message{ChatJID: "group:acme", Sender: "agent:main", OnBehalfOf: "telegram:7", ForwardedFrom: &msg.ReturnAddress{RootTurnID: turn.ID}}, true},
		"an agent for another user":    {msg.Message{ChatJID: "group:acme", Sender: "agent:main", OnBehalfOf: "telegram:8", ForwardedFrom: &msg.ReturnAddress{RootTurnID: turn.ID}}, false},
		"an agent, of a deleted turn":  {msg.Message{ChatJID: "group:acme", Sender: "agent:main", OnBehalfOf: "telegram:7", ForwardedFrom: &msg.ReturnAddress{RootTurnID: 999}}, false},
		"an agent in the admin's name": {msg.Message{ChatJID: elsewhere, Sender: "agent:main", OnBehalfOf: "telegram:7"}, false},
	} {
		got := storetest.Must(rows.MembersForRow(t.Context(), s.Reader, &members, &tt.row))(t)
		if got.Admits("telegram:7", false) != tt.want && tt.row.OnBehalfOf != "telegram:8" || got.Admits("telegram:8", false) {
			t.Errorf("%s: %+v", name, got.Roles)
		}
	}
	ask := msg.Ask{Who: msg.Who{Admins: true}}
	for sender, want := range map[string]bool{"telegram:7": true, "telegram:8": false} {
		if err := rows.AddAdmin(t.Context(), s.Reader, storetest.Chat, sender, nil, &ask); err != nil || ask.Who.May(sender) != want || ask.Who.None() {
			t.Errorf("%s: %+v, %v", sender, ask.Who, err)
		}
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutAdmin(storetest.Chat, "telegram:7", false) })
	if is, err := s.IsAdmin(t.Context(), storetest.Chat, "telegram:7"); is || err != nil {
		t.Errorf("still an admin: %t, %v", is, err)
	}
}
