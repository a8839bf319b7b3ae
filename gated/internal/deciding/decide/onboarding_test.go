package decide

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// requested are the facts of a chat whose request was read.
func requested(q Request, rows ...Row) *Facts {
	f := facts(rows...)
	f.Request = q
	f.Request.Read = true
	return f
}

var pending = Request{State: RequestPending, Code: "ABCD-1234"}

// alone is a row of a chat without a group.
func alone(r *Row) {
	r.Answer = routeapi.Answer{ID: r.ID, Action: routeapi.None, Reason: msg.ReasonNoRoute, Impulse: impulse()}
}

// toOnbod is a row whose route says daemon:onbod.
func toOnbod(r *Row) {
	r.Answer = routeapi.Answer{ID: r.ID, Action: routeapi.Daemon, Target: routeapi.Onboarding, Reason: msg.ReasonDaemon, Impulse: impulse()}
}

func group(f *Facts) *Facts         { f.Chat.Kind = msg.ChatGroup; return f }
func parked(f *Facts, n int) *Facts { f.Parked = n; return f }
func bot(r *Row)                    { r.IsBot = true }
func homed(r *Row)                  { r.Answer.Home = "main" }
func addressed(r *Row)              { r.Addressed = true }
func tooOld(r *Row)                 { r.Old = true }

func TestStep_ChatWithoutGroup_AsksOnce(t *testing.T) {
	t.Parallel()
	none, out := Request{}, Request{Call: Call{State: CallOut}}
	for _, tt := range []struct {
		name string
		f    *Facts
		want string
	}{
		{"request not read yet", facts(row(1, "a", alone), row(2, "b", alone)), ""},
		{"direct chat", requested(none, row(1, "a", alone), row(2, "b", alone)), "OpenRequest{Row:1}; Wait{Row:2 For:request}"},
		{"call is out", requested(out, row(1, "a", alone)), "Wait{Row:1 For:request}"},
		{"pending, but the call is out", requested(Request{State: RequestPending, Call: Call{State: CallOut}}, row(1, "a", alone)), "Wait{Row:1 For:request}"},
		{"pending", requested(pending, row(1, "a", alone), row(2, "b", alone)), "1 onboarding/awaiting_approval; 2 onboarding/awaiting_approval"},
		{"pending, fifty wait", parked(requested(pending, row(1, "a", alone), row(2, "b", alone)), maxParked-1), "1 onboarding/awaiting_approval; 2 dropped/onboarding_full"},
		{"rejected lately", requested(Request{Call: Call{State: CallRejected}}, row(1, "a", alone)), "1 dropped/rejected"},
		{"too many requests", requested(Request{Call: Call{State: CallLimited}}, row(1, "a", alone)), "1 dropped/onboarding_limit"},
		{"refused", requested(Request{Call: Call{State: CallRefused, Error: "odd"}}, row(1, "a", alone)), "1 dropped/bad_row"},
		{"an earlier request was rejected", requested(Request{State: RequestRejected}, row(1, "a", alone)), "OpenRequest{Row:1}"},

		{"group chat, not addressed", group(requested(none, row(1, "a", alone))), "1 dropped/no_route"},
		{"group chat, mention", group(requested(none, row(1, "a", alone, verb(msg.VerbMention)))), "OpenRequest{Row:1}"},
		{"group chat, the bot was added", group(requested(none, row(1, "added", alone, verb(msg.VerbJoin), addressed))), "OpenRequest{Row:1}"},
		{"group chat, another member joined", group(requested(none, row(1, "joined", alone, verb(msg.VerbJoin)))), "1 dropped/no_route"},
		{"direct chat, the bot was unblocked", requested(none, row(1, "unblocked the bot", alone, verb(msg.VerbJoin), addressed)), "1 dropped/no_route"},
		{"direct chat, the bot was blocked", requested(none, row(1, "blocked the bot", alone, verb(msg.VerbLeave))), "1 dropped/no_route"},
		{"reaction", requested(none, row(1, "a", alone, verb(msg.VerbReaction)), row(2, "b")), "1 dropped/no_route; turn main [2]"},
		{"another bot", requested(none, row(1, "a", alone, bot)), "1 dropped/no_route"},
		{"too old on arrival", requested(none, row(1, "a", alone, tooOld)), "Reply{Row:1 Source:notice Text:" + OfflineNotice + "}; 1 observed/stale"},
		{"direct chat has a group for mentions", requested(none, row(1, "a", alone, homed)), "OpenRequest{Row:1}"},
		{"direct chat has a group for mentions, another bot", requested(none, row(1, "a", alone, homed, bot)), "1 dropped/no_route"},
		{"group chat has a group for mentions", group(requested(none, row(1, "a", alone, homed))), "1 dropped/no_route"},
		{"group chat has a group for mentions, the bot was added", group(requested(none, row(1, "added", alone, homed, verb(msg.VerbJoin), addressed))),
			"1 dropped/no_route"},

		{"route to onbod, group chat", group(requested(none, row(1, "a", toOnbod))), "OpenRequest{Row:1}"},
		{"route to onbod, bot", group(requested(none, row(1, "a", toOnbod, bot))), "1 dropped/no_route"},
		{"route to onbod, reaction", group(requested(none, row(1, "a", toOnbod, verb(msg.VerbReaction)), row(2, "b"))), "1 dropped/no_route; turn main [2]"},
		{"route to onbod, too old", group(requested(none, row(1, "a", toOnbod, tooOld))),
			"Reply{Row:1 Source:notice Text:" + OfflineNotice + "}; 1 observed/stale"},

		{"status", requested(pending, row(1, "/status", command, alone)),
			"1 command/command; Reply{Row:1 Source:command Text:" + fmt.Sprintf(textPending, pending.Code) + "}"},
		{"status, approved", requested(Request{State: RequestPending, Code: "ABCD-1234", Noted: true}, row(1, "/status", command, alone)),
			"1 command/command; Reply{Row:1 Source:command Text:" + fmt.Sprintf(textApproved, "ABCD-1234") + "}"},
		{"status, rejected", requested(Request{State: RequestRejected, Code: "ABCD-1234", DecidedAt: now - 150*60_000}, row(1, "/status", command, alone)),
			"1 command/command; Reply{Row:1 Source:command Text:" + fmt.Sprintf(textRejected, "ABCD-1234", 22) + "}"},
		{"status, rejected long ago", requested(Request{State: RequestRejected, Code: "ABCD-1234", DecidedAt: now - 25*3600_000}, row(1, "/status", command, alone)),
			"1 command/command; Reply{Row:1 Source:command Text:" + textNoGroup + "}"},
		{"ping", requested(pending, row(1, "/ping", command, alone)), "1 command/command; Reply{Row:1 Source:command Text:pong}"},
		{"stop", requested(pending, row(1, "/stop", command, alone)),
			"StopChat{Row:1 By:telegram:7 ThreadID: Topic: OneTopic:false Only:telegram:7 Except:[1] Own:false}; StopParked{Row:1 ThreadID: Sender:telegram:7}; 1 command/command; Reply{Row:1 Source:command Text:stopped}"},
		{"stop without a sender drops the messages of none", requested(pending, row(1, "/stop", command, alone, func(r *Row) { r.Sender = "" })),
			"StopChat{Row:1 By: ThreadID: Topic: OneTopic:false Only:? Except:[1] Own:false}; StopParked{Row:1 ThreadID: Sender:?}; 1 command/command; Reply{Row:1 Source:command Text:stopped}"},
		{"stop, onbod is called", requested(out, row(1, "a", alone), row(2, "/stop", command, alone)),
			"StopChat{Row:2 By:telegram:7 ThreadID: Topic: OneTopic:false Only:telegram:7 Except:[2] Own:false}; StopParked{Row:2 ThreadID: Sender:telegram:7}; 2 command/command; Reply{Row:2 Source:command Text:stopped}"},
		{"stop of an operator", requested(pending, row(1, "/stop", command, alone, operator)),
			"StopChat{Row:1 By:telegram:7 ThreadID: Topic: OneTopic:false Only: Except:[1] Own:false}; StopParked{Row:1 ThreadID: Sender:}; 1 command/command; Reply{Row:1 Source:command Text:stopped}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			next, effects := Step(State{}, tt.f)
			diff(t, "effects", said(effects), tt.want)
			if unread := tt.want == ""; next.ReadsRequest != unread || next.Again != unread && len(effects) == 0 {
				t.Errorf("the state is %+v", next)
			}
		})
	}
}

func TestStep_ParkedRows_AreDecidedFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		state   RequestState
		samples []Row
		want    string
	}{
		{"pending", RequestPending, []Row{row(1, "", alone)}, "5 onboarding/awaiting_approval"},
		{"approved", RequestApproved, []Row{row(1, "")}, "TakeUpParked{}"},
		{"route added by hand", RequestPending, []Row{row(1, "")}, "TakeUpParked{}"},
		{"route for one sender added by hand", RequestPending, []Row{row(1, "", alone), row(2, "")}, "TakeUpParked{}"},
		{"rejected", RequestRejected, []Row{row(1, "", alone)}, "DropParked{Reason:rejected}"},
		{"expired", RequestExpired, []Row{row(1, "", alone)}, "DropParked{Reason:expired}"},
		{"rejected, route added by hand", RequestRejected, []Row{row(1, "")}, "TakeUpParked{}"},
		{"approved, route removed by hand", RequestApproved, []Row{row(1, "", alone)}, "TakeUpParked{}"},
		{"no request, as from a backup", "", []Row{row(1, "", alone)}, "TakeUpParked{}"},
		{"refused by routd", RequestPending, []Row{row(1, "", answer(routeapi.Answer{Error: "odd"}))}, "5 onboarding/awaiting_approval"},
		{"without routd's answer", RequestApproved, []Row{row(1, "", unanswered)}, "Wait{Row:5 For:routd}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := parked(requested(Request{State: tt.state, Code: "ABCD-1234"}, row(5, "a", alone)), len(tt.samples))
			f.Samples = tt.samples
			next, effects := Step(State{}, f)
			diff(t, "effects", said(effects), tt.want)
			if again := tt.want[0] != '5' && tt.want[0] != 'W'; next.Again != again {
				t.Errorf("the state is %+v", next)
			}
		})
	}
}

func TestStep_EditOfParkedRow_ChangesIt(t *testing.T) {
	t.Parallel()
	target := &msg.Message{ID: 3, ChatJID: chat, Verb: msg.VerbMessage, Content: "hi", Disposition: msg.Onboarding}
	for v, want := range map[string]string{
		msg.VerbEdit:   "5 dropped/edit_applied; TakeUpRow{Row:3}; ReplaceContent{Row:5 Target:3 Content:new Addressed:false Verb:message}",
		msg.VerbDelete: "5 dropped/edit_applied; TakeUpRow{Row:3}; 3 dropped/deleted",
	} {
		next, effects := Step(State{}, facts(row(5, "new", verb(v), change(Change{Target: target, Subject: target}))))
		diff(t, v, said(effects), want)
		if !next.Again {
			t.Errorf("%s: the state is %+v", v, next)
		}
	}
}

// code sets the facts about the code of a command.
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
