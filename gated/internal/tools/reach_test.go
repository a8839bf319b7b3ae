package tools

import (
	"strings"
	"testing"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// A child at work for its parent answers into the parent's chat, and can do nothing else there.
func TestDelegatedTurn_ChatOfItsParent_IsOutOfReach(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m := &msg.Message{ChatJID: "group:acme/eng", Direction: msg.In, Content: "look into it", Sender: "agent:acme", ForwardedFrom: &msg.ReturnAddress{
		Kind: msg.Delegation, TurnID: f.turn.ID, RootTurnID: f.turn.ID, Depth: 1, Folder: folder, ChatJID: chat,
	}}
	turn, child := f.startTurn(m, &msg.Turn{Kind: msg.Delegated, Folder: "acme/eng", ChatJID: chat, Depth: 1, RootTurnID: f.turn.ID})
	child.Begin(turn.ID, &groupconfig.Config{AssistantName: "ari", Observe: "all"})
	for tool, arguments := range map[string]string{
		"inject_message": `{"chat_jid":"OWN_CHAT","content":"hi"}`, "get_thread": `{"message_id":OWN_MESSAGE}`, "broadcast": `{"text":"hi","chats":["OWN_CHAT"]}`,
	} {
		f.refusedAs(child, tool, arguments, "reach")
	}
	if text := f.worksAs(child, "search_messages", `{"text":"deploys"}`); strings.Contains(text, "who deploys") {
		t.Errorf("found: %s", text)
	}
	f.worksAs(child, "send_message", `{"text":"found it"}`)
}

func TestInjectMessage_CommandsAndNames_AreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, content := range []string{"/stop", "/new go on", "/approve ABCD-1234 main", "@eng", "@eng do it", "@", " @eng", "\u2003@eng do it"} {
		f.refused("inject_message", `{"chat_jid":"OWN_CHAT","content":"`+content+`"}`, "are for users")
	}
}

func TestSearchMessages_WithdrawnAndRefusedRows_AreLeftOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	refused := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "needle of a stranger", Sender: "telegram:66", Timestamp: 1, ReceivedAt: 2}
	f.put(refused,
		&msg.Message{ChatJID: chat, PlatformID: "p2", Direction: msg.In, Content: "needle that is deleted", Sender: "telegram:7", Timestamp: 1, ReceivedAt: 2},
		&msg.Message{ChatJID: chat, TargetID: "p2", Verb: msg.VerbDelete, Direction: msg.In, Sender: "telegram:7", Timestamp: 3, ReceivedAt: 3},
		&msg.Message{ChatJID: chat, Direction: msg.In, Content: "needle that stays", Sender: "telegram:7", Timestamp: 1, ReceivedAt: 2})
	f.write(func(tx *store.Tx) error {
		return tx.Decide(refused.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoAccess}, 3)
	})
	if found := f.works("search_messages", `{"text":"needle"}`); strings.Count(found, "needle") != 1 || !strings.Contains(found, "stays") {
		t.Errorf("found %s", found)
	}
}
