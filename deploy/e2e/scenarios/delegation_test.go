package scenarios

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// returnAddress is the return address of work that a turn of telegram:-5 has started.
func returnAddress(kind msg.ReturnKind, root *msg.Turn) *msg.ReturnAddress {
	return &msg.ReturnAddress{
		Kind: kind, TurnID: root.ID, RootTurnID: root.ID, Depth: 1, Folder: root.Folder, ChatJID: root.ChatJID,
		Topic: root.Topic, ThreadID: root.ThreadID, Place: root.Place, ReplyTo: root.ReplyTo,
		Surface: root.Surface, Ceiling: root.Ceiling,
	}
}

// handedTo is a row that one group writes to another.
func handedTo(to, text string, address *msg.ReturnAddress) msg.Message {
	return msg.Message{
		ChatJID: "group:" + to, Sender: "agent:" + address.Folder, IsBot: true, Content: text,
		Source: msg.SourceDelegate, ForwardedFrom: address,
	}
}

// originTurn is the turn that delegates: one in a thread of telegram:-5.
func originTurn(f *harness.Fixture, text string) *msg.Turn {
	f.T.Helper()
	id := f.Put(msg.Message{ChatJID: "telegram:-5", PlatformID: "q1", ThreadID: "77", Topic: "77", Content: text})[0]
	return f.WaitEnded(id)
}

func TestDelegation_Text_IsNeitherCommandNorToken(t *testing.T) {
	f := start(t, harness.Options{})
	origin := originTurn(f, "hello")
	for _, text := range []string{"/stop", "#deploy", "@eng", "#deploy ship it"} {
		row := f.Put(handedTo("main/eng", text, returnAddress(msg.Delegation, origin)))[0]
		f.WantDecision(row, msg.Routed, msg.ReasonDelegated)
		if answer := f.Answer(row); !strings.HasPrefix(answer, "You said: "+text+"\n") {
			t.Errorf("%q was answered %q", text, answer)
		}
	}
}

func TestDelegation_InvalidReturnAddress_IsDropped(t *testing.T) {
	f := start(t, harness.Options{})
	origin := originTurn(f, "hello")
	for name, invalidate := range map[string]func(*msg.ReturnAddress){
		"no chat":               func(a *msg.ReturnAddress) { a.ChatJID = "" },
		"no address":            func(a *msg.ReturnAddress) { a.ChatJID = "nowhere" },
		"an unknown kind":       func(a *msg.ReturnAddress) { a.Kind = "gossip" },
		"an unknown root":       func(a *msg.ReturnAddress) { a.RootTurnID = 4711 },
		"no root":               func(a *msg.ReturnAddress) { a.RootTurnID = 0 },
		"an answer to a path":   func(a *msg.ReturnAddress) { a.Kind, a.Folder = msg.Answer, "../../evil" },
		"an answer to no group": func(a *msg.ReturnAddress) { a.Kind, a.Folder = msg.Answer, "" },
		"an answer to unknown":  func(a *msg.ReturnAddress) { a.Kind, a.Folder = msg.Answer, "unknown" },
		"a negative depth":      func(a *msg.ReturnAddress) { a.Depth = -100 },
	} {
		address := returnAddress(msg.Delegation, origin)
		invalidate(address)
		row := f.Put(handedTo("main/eng", name, address))[0]
		if m := f.WaitDecided(row); m.Disposition != msg.Dropped {
			t.Errorf("%s: the row is %s/%s", name, m.Disposition, m.Reason)
		}
	}
	f.WantEchoes("telegram:-5", "hello")
}
