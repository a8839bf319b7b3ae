package decide

import (
	"testing"

	"arizuko/pkg/msg"
)

// On Slack "!" begins a command, on whichever account.
func TestNewRow_SlackCommandOfFurtherAccount_IsCommand(t *testing.T) {
	for chat, want := range map[string]bool{"slack:C1": true, "slack+work:C1": true, "telegram+work:5": false} {
		r := NewRow(&msg.Message{ChatJID: chat, Direction: msg.In, Verb: msg.VerbMessage, Content: "!new"}, 1, nil, nil)
		if got := r.Command != nil; got != want {
			t.Errorf("%s: !new is a command: %t", chat, got)
		}
	}
}
