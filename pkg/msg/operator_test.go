package msg

import "testing"

func TestIsOperator_ByIDAndWebLogin(t *testing.T) {
	operators := map[string]bool{"telegram:42": true}
	for _, tt := range []struct {
		chat, sender string
		want         bool
	}{
		{"telegram:-1", "telegram:42", true},
		{"web:acme", "telegram:42", true},
		{"web:acme", WebOperator, true},
		{"telegram:-1", WebOperator, false}, // only the dashboard writes such rows, and to its own chats
		{"telegram:-1", "telegram:4", false},
		{"telegram:-1", "", false},
	} {
		if got := IsOperator(operators, tt.chat, tt.sender); got != tt.want {
			t.Errorf("%s in %s is an operator: %t", tt.sender, tt.chat, got)
		}
	}
}
