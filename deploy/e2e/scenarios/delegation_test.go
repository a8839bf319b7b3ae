package scenarios

import (
	"fmt"
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

func TestDelegation_Answer_GoesToOriginThread(t *testing.T) {
	f := start(t, harness.Options{})
	origin := originTurn(f, "ask the child")
	row := f.Put(handedTo("main/eng", "what broke?", returnAddress(msg.Delegation, origin)))[0]
	f.WantDecision(row, msg.Routed, msg.ReasonDelegated)
	f.Answer(row)
	turn := f.Turn(row)
	wantTurnOf(t, turn, "main/eng", fmt.Sprintf("#d%d", row))
	if turn.Kind != msg.Delegated || turn.Depth != 1 || turn.RootTurnID != origin.ID {
		t.Errorf("turn %+v", turn)
	}
	out := f.Outbound("telegram:-5")
	if last := out[len(out)-1]; last.ThreadID != "77" || last.Topic != "77" || last.ReplyToID != "q1" || last.TurnID != turn.ID {
		t.Errorf("answer %+v", last)
	}
	if n := len(f.Outbound("group:main/eng")); n != 0 {
		t.Errorf("%d answers in the child's own chat", n)
	}
}

func TestEscalation_Answer_ReturnsToAskingGroup(t *testing.T) {
	f := start(t, harness.Options{})
	origin := originTurn(f, "ask the parent")
	address := returnAddress(msg.Escalation, origin)
	address.Folder = "main/eng"
	row := f.Put(handedTo("main", "may I?", address))[0]
	f.WantDecision(row, msg.Routed, msg.ReasonDelegated)
	wantTurnOf(t, f.WaitEnded(row), "main", fmt.Sprintf("#d%d", row))
	f.WantEchoes("telegram:-5", "ask the parent", "You said: may I?")
	turns := f.Query(`SELECT folder, topic, thread_id, reply_to FROM turns WHERE chat_jid = 'telegram:-5' ORDER BY id DESC LIMIT 1`)
	if turns[0] != "main/eng 77 77 q1" {
		t.Errorf("the answer returned to %q", turns[0])
	}
}

func TestDelegation_DepthAndFanOut_AreLimited(t *testing.T) {
	f := start(t, harness.Options{})
	origin := originTurn(f, "delegate a lot")
	address := returnAddress(msg.Delegation, origin)
	address.Depth = 9
	f.WantDecision(f.Put(handedTo("main/eng", "too deep", address))[0], msg.Dropped, msg.ReasonFanOut)
	address.Depth = 8
	var rows []msg.Message
	for i := range 12 {
		rows = append(rows, handedTo("main/eng", fmt.Sprintf("job %d", i), address))
	}
	ids := append(f.Put(rows...), f.Put(rows...)...)
	for i, id := range ids {
		if i < 16 {
			f.WantDecision(id, msg.Routed, msg.ReasonDelegated)
		} else {
			f.WantDecision(id, msg.Dropped, msg.ReasonFanOut)
		}
	}
	f.WaitIdle()
	if n := len(f.Echoes("telegram:-5")); n != 1+16 {
		t.Errorf("%d answers", n)
	}
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
