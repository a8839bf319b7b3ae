package match

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventOf_JIDs_GiveFields(t *testing.T) {
	tests := []struct{ chatJID, platform, account, room string }{
		{"telegram:-1001234", "telegram", "", "-1001234"},
		{"telegram+work:-1001234", "telegram", "work", "-1001234"},
		{"web:acme/eng", "web", "", "acme/eng"},
		{"slack:C0:extra", "slack", "", "C0:extra"},
		{"discord:", "discord", "", ""},
		{":x", "", "", "x"},
		{"nocolon", "nocolon", "", ""},
		{"", "", "", ""},
	}
	for _, tt := range tests {
		want := Event{
			Platform: tt.platform, Account: tt.account, Room: tt.room, ChatJID: tt.chatJID,
			Sender: "telegram:77", SenderName: "Ann", Verb: "reply",
		}
		if diff := cmp.Diff(want, EventOf(tt.chatJID, "telegram:77", "Ann", "reply")); diff != "" {
			t.Errorf("EventOf(%q) (-want +got):\n%s", tt.chatJID, diff)
		}
	}
}
