package decide

import (
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

// code is what was read about the code of a command.
func code(c Code) func(*Row) { return func(r *Row) { r.Code = &c } }

func TestStep_OperatorCommand(t *testing.T) {
	t.Parallel()
	const (
		right  = "/operator ABCD-EFGH-2345"
		hidden = "ReplaceContent{Row:2 Target:2 Content:/operator Addressed:false Verb:message}; "
		reply  = "2 command/command; Reply{Row:2 Source:command Text:"
	)
	group := func(f *Facts) *Facts { f.Chat.Kind = msg.ChatGroup; return f }
	ours := Code{Hash: "h", Open: true, Right: true}
	for _, tt := range []struct {
		name string
		f    *Facts
		want string
	}{
		{"the code", facts(row(2, right, command, code(ours))),
			hidden + "AddOperator{Row:2 Hash:h}; " + reply + "You are an operator now, as telegram:7. /help lists what operators may write.}"},
		{"what follows is decided again", facts(row(2, right, command, code(ours)), row(3, "/approve X", command)),
			hidden + "AddOperator{Row:2 Hash:h}; " + reply + "You are an operator now, as telegram:7. /help lists what operators may write.}"},
		{"a wrong one", facts(row(2, right, command, code(Code{Hash: "x", Open: true}))), hidden + "NoteWrongCode{Row:2}; " + reply + textWrongCode + "}"},
		{"a code where none is open", facts(row(2, right, command, code(Code{Hash: "h"}))), hidden + reply + textWrongCode + "}"},
		{"no code", facts(row(2, "/operator", command, code(Code{Open: true}))),
			hidden + reply + "Create a code on the dashboard, under Access, then send /operator and the code here.}"},
		{"the code, with a file", facts(row(2, right, func(r *Row) { r.Attachments = []msg.Attachment{{Name: "a.pdf"}} }, command, code(ours))),
			hidden + "AddOperator{Row:2 Hash:h}; " + reply + "You are an operator now, as telegram:7. /help lists what operators may write.}"},
		{"the code in a group chat", group(facts(row(2, right, command, code(ours)))), hidden + "EndCode{Row:2}; " + reply + textCodeInGroup + "}"},
		{"a wrong one in a group chat", group(facts(row(2, right, command, code(Code{Hash: "x", Open: true})))), hidden + reply + textCodeInGroup + "}"},
		{"of an operator", facts(row(2, right, command, operator)), hidden + reply + textIsOperator + "}"},
		{"by an agent", facts(row(2, right, command, func(r *Row) {
			r.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Injection, RootTurnID: 5, Depth: 1}
			r.SetReturn(&Return{RootExists: true})
		}, code(ours))), hidden + reply + textWrongCode + "}"},
		{"of a bot", facts(row(2, right, func(r *Row) { r.IsBot = true }, command)), "turn main [2]"},
		{"of an ignored sender", facts(row(2, right, command, code(ours), ignored)), "2 dropped/builtin_drop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, effects := Step(State{}, tt.f)
			diff(t, "effects", said(effects), tt.want)
		})
	}
	if strings.Contains(textWrongCode, "%") || strings.Contains(textCodeInGroup, "%") {
		t.Error("an answer to a code that does not work must not differ")
	}
}
