package decide

import (
	"strings"
	"testing"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func TestStep_EachRow_HasItsEffects(t *testing.T) {
	t.Parallel()
	target := &msg.Message{ID: 3, ChatJID: chat, Verb: msg.VerbMessage, Content: "hi"}
	routed := &msg.Message{ID: 3, ChatJID: chat, Disposition: msg.Routed, RoutedTo: "main", Topic: "#a"}
	sent := &msg.Message{ID: 3, ChatJID: chat, Content: "same", Disposition: msg.Routed, RoutedTo: "main", Attachments: []msg.Attachment{{Name: "a.pdf", Path: "media/a.pdf"}}}
	edit := verb(msg.VerbEdit)
	files := func(name string) func(*Row) {
		return func(r *Row) { r.Attachments = []msg.Attachment{{Name: name, Ref: "x"}} }
	}
	reply := &msg.Message{ID: 2, ChatJID: chat, Direction: msg.Out}
	toDaemon := answer(routeapi.Answer{Action: routeapi.Daemon, Target: "daemon:crm", RouteID: 7})
	for _, tt := range []struct {
		name string
		f    *Facts
		want string
	}{
		{"nothing", facts(), ""},
		{"routed", facts(row(1, "a"), row(2, "b")), "turn main [1 2]"},
		{"first row of a chat", func() *Facts { f := facts(row(1, "a")); f.HasChat = false; return f }(), "EnsureChat{Chat:telegram:1}; turn main [1]"},
		{"observed", facts(row(1, "a", observed)), "1 observed/route_observe main"},
		{"builtin drop", facts(row(1, "a", ignored)), "1 dropped/builtin_drop"},
		{"no route, not addressed", facts(row(1, "a", verb(msg.VerbLeave), answer(routeapi.Answer{Action: routeapi.None}))), "1 dropped/no_route"},
		{"refused by routd", facts(row(1, "a", answer(routeapi.Answer{Error: "odd"})), row(2, "b")), "1 dropped/bad_row; turn main [2]"},
		{"facts that cannot be read", facts(row(1, "a", func(r *Row) { r.Break("panic") }), row(2, "b")), "1 dropped/bad_row; turn main [2]"},
		{"builtin ping", facts(row(1, "a", answer(routeapi.Answer{Action: routeapi.Builtin, Target: "builtin:ping"}))),
			"1 command/builtin_ping; Reply{Row:1 Source:command Text:pong}"},
		{"a group that is gone", facts(row(1, "a", answer(routeapi.Answer{Action: routeapi.None, Reason: msg.ReasonNoGroup}))), "1 dropped/no_group"},
		{"of a clock that is ahead", facts(row(1, "a", received(now+3_600_000), func(r *Row) { r.Answer.Impulse.Threshold = 1000 })),
			"Hold{Row:1 Until:1000060000}"},
		{"too old on arrival", facts(row(1, "a", func(r *Row) { r.Old = true }), row(2, "b", func(r *Row) { r.Old = true })),
			"Reply{Row:1 Source:notice Text:" + OfflineNotice + "}; 1 observed/stale main; 2 observed/stale main"},
		{"daemon", facts(row(1, "a", toDaemon)), "AskService{Row:1 Service:daemon:crm RouteID:7 Folder: Operator:false}"},

		{"prefix", facts(row(1, "@eng ship"), row(2, "#fix it")),
			"1 prefix/prefix_group main/eng; 2 prefix/prefix_topic main; turn main/eng [1=ship]; turn main#fix [2=it]"},
		{"topic token", facts(row(1, "a"), row(2, "#fix"), row(3, "b")),
			"turn main [1]; 2 sticky/sticky_topic; PinTopic{Row:2 Topic:#fix}; Reply{Row:2 Source:command Text:topic → fix}"},
		{"group token", facts(row(1, "@eng")),
			"1 sticky/sticky_group; PinGroup{Row:1 Folder:main/eng At:1000000000}; Reply{Row:1 Source:command Text:routing → eng}"},
		{"token of a bot", facts(row(1, "#fix", func(r *Row) { r.IsBot = true })), "turn main [1]"},
		{"token that came too late", facts(row(1, "#fix", func(r *Row) { r.Old = true })),
			"Reply{Row:1 Source:notice Text:" + OfflineNotice + "}; 1 observed/stale main"},
		{"token of an ignored sender", facts(row(1, "#fix", ignored)), "1 dropped/builtin_drop"},

		{"ping behind a held row", facts(row(1, "a", quiet), row(2, "/ping", command)),
			"2 command/command; Reply{Row:2 Source:command Text:pong}; Hold{Row:1 Until:1000005000}"},
		{"chatid", facts(row(2, "/chatid", command)), "2 command/command; Reply{Row:2 Source:command Text:telegram:1\nyou are telegram:7}"},
		{"chatid in the sender's direct chat", facts(row(2, "/chatid", command, func(r *Row) { r.Sender = chat })), "2 command/command; Reply{Row:2 Source:command Text:telegram:1}"},
		{"ping of an ignored sender", facts(row(2, "/ping", command, ignored)), "2 dropped/builtin_drop"},
		{"for operators", facts(row(2, "/approve X", command)), "2 command/command; Reply{Row:2 Source:command Text:Only operators can do that.}"},
		{"status", facts(row(2, "/status", command)), "AskService{Row:2 Service:dashd RouteID:0 Folder:main Operator:false}"},
		{"alerts of a user", facts(row(2, "/alerts off", command)), "2 command/command; Reply{Row:2 Source:command Text:Only operators can do that.}"},
		{"alerts", facts(row(2, "/alerts off", command, operator)), "AskService{Row:2 Service:dashd RouteID:0 Folder:main Operator:true}"},
		{"status where the group is not known yet", func() *Facts { f := facts(row(2, "/status", command, unanswered)); f.Routd = RoutdSlow; return f }(), "Wait{Row:2 For:routd}"},
		{"status without an answer", facts(row(2, "/status", command, unanswered)), "AskService{Row:2 Service:dashd RouteID:0 Folder: Operator:false}"},
		{"new without an answer", facts(row(2, "/new", command, unanswered)), "Wait{Row:2 For:routd}"},
		{"new that routd refused", facts(row(2, "/new", command, answer(routeapi.Answer{Error: "odd"}))),
			"2 command/command; Reply{Row:2 Source:command Text:" + textRefused + "}"},
		{"stop where no group is left", facts(row(2, "/stop", command, func(r *Row) { r.Answer.Home = "" })),
			"StopChat{Row:2 By:telegram:7 ThreadID: Topic: OneTopic:false Only:telegram:7 Except:[2] Own:false}; StopParked{Row:2 ThreadID: Sender:telegram:7}; 2 command/command; Reply{Row:2 Source:command Text:stopped}"},
		{"stop of an ignored sender", facts(row(2, "/stop", command, ignored)), "2 dropped/builtin_drop"},
		{"no group", requested(Request{}, row(2, "/new", command, func(r *Row) { r.Answer.Home = "" })), "2 command/command; Reply{Row:2 Source:command Text:" + textNoGroup + "}"},
		{"new with text", facts(row(1, "a", quiet), row(2, "/new go", command), row(3, "b")),
			"turn main [1]; 2 command/command main; ResetSession{Row:2 Folder:main Topic:}; turn main [2=go]"},
		{"stop", facts(row(1, "a"), row(2, "/stop", command), row(3, "b")),
			"StopChat{Row:2 By:telegram:7 ThreadID: Topic: OneTopic:false Only: Except:[2] Own:false}; StopParked{Row:2 ThreadID: Sender:telegram:7}; 2 command/command; Reply{Row:2 Source:command Text:stopped}"},
		{"stop where others operate", func() *Facts {
			f := facts(row(2, "/stop", command, to(operated)))
			f.Chat.Kind = msg.ChatGroup
			return f
		}(),
			"StopChat{Row:2 By:telegram:7 ThreadID: Topic: OneTopic:false Only:telegram:7 Except:[2] Own:true}; StopParked{Row:2 ThreadID: Sender:telegram:7}; 2 command/command; Reply{Row:2 Source:command Text:" +
				"stopped what you asked for; only operators and the users who operate this group (telegram:42) can stop what others asked for}"},
		{"stop by the one who operates", facts(row(2, "/stop", command, to(operated), func(r *Row) { r.Sender = "telegram:42" })),
			"StopChat{Row:2 By:telegram:42 ThreadID: Topic: OneTopic:false Only: Except:[2] Own:false}; StopParked{Row:2 ThreadID: Sender:telegram:42}; 2 command/command; Reply{Row:2 Source:command Text:stopped}"},
		{"stop in a direct chat where others operate", facts(row(2, "/stop", command, to(operated))),
			"StopChat{Row:2 By:telegram:7 ThreadID: Topic: OneTopic:false Only: Except:[2] Own:false}; StopParked{Row:2 ThreadID: Sender:telegram:7}; 2 command/command; Reply{Row:2 Source:command Text:stopped}"},
		{"model by a member", facts(row(2, "/model big", command, to(operated))), "AskService{Row:2 Service:gated RouteID:0 Folder:main Operator:false}"},
		{"model by the one who operates", facts(row(2, "/model big", command, to(operated), func(r *Row) { r.Sender = "telegram:42" })),
			"AskService{Row:2 Service:gated RouteID:0 Folder:main Operator:true}"},
		{"who", facts(row(2, "/who", command)), "AskService{Row:2 Service:gated RouteID:0 Folder:main Operator:false}"},
		{"who, not admitted", facts(row(2, "/who", command, to(closed))), "2 dropped/no_access"},
		{"approve by the one who operates", facts(row(2, "/approve X", command, to(operated), func(r *Row) { r.Sender = "telegram:42" })),
			"2 command/command; Reply{Row:2 Source:command Text:Only operators can do that.}"},
		{"stop leaves the rows of services alone", facts(row(1, "/status", command), row(2, "/stop", command)),
			"AskService{Row:1 Service:dashd RouteID:0 Folder:main Operator:false}; StopChat{Row:2 By:telegram:7 ThreadID: Topic: OneTopic:false Only: Except:[1 2] Own:false}; StopParked{Row:2 ThreadID: Sender:telegram:7}; 2 command/command; Reply{Row:2 Source:command Text:stopped}"},
		{"a command that came too late", facts(row(2, "/stop", func(r *Row) { r.Timestamp -= 3 * 86_400_000 }, command)),
			"Reply{Row:2 Source:notice Text:" + OfflineNotice + "}; 2 observed/stale main"},

		{"edit of an undecided row", facts(row(4, "new", verb(msg.VerbEdit), change(Change{Target: target, Subject: target})), row(5, "b")),
			"4 dropped/edit_applied; ReplaceContent{Row:4 Target:3 Content:new Addressed:false Verb:message}"},
		{"deletion of an undecided row", facts(row(4, "", verb(msg.VerbDelete), change(Change{Target: target, Subject: target}))), "4 dropped/edit_applied; 3 dropped/deleted"},
		{"edit of a decided row", facts(row(4, "new", verb(msg.VerbEdit), func(r *Row) { r.TargetID = "p3" }, change(Change{Target: routed, Subject: routed}))),
			"SupersedeNotes{Row:4 Target:p3}; 4 observed/edit_note main"},
		{"edit of a question that was taken back", facts(row(4, "new", verb(msg.VerbEdit), change(Change{Target: routed, Subject: routed, Turn: &msg.Turn{State: msg.TurnDone, UndoneAt: 1}}))),
			"4 dropped/edit_untaken"},
		{"edit without a change", facts(row(4, "same", edit, files("a.pdf"), change(Change{Target: sent, Subject: sent}))), "4 dropped/edit_same"},
		{"edit without a change, on a platform that leaves out the files", facts(row(4, "same", edit, change(Change{Target: sent, Subject: sent}))), "4 dropped/edit_same"},
		{"edit of another file", facts(row(4, "same", edit, files("b.pdf"), change(Change{Target: sent, Subject: sent}))),
			"SupersedeNotes{Row:4 Target:}; 4 observed/edit_note main"},
		{"edit like the one before", facts(row(4, "new", edit, change(Change{Target: sent, Subject: sent, Latest: row(3, "new", edit).Message}))), "4 dropped/edit_same"},
		{"edit back to the first words", facts(row(4, "same", edit, change(Change{Target: sent, Subject: sent, Latest: row(3, "new", edit).Message}))),
			"SupersedeNotes{Row:4 Target:}; 4 observed/edit_note main"},
		{"edit that adds a mention alone", facts(row(4, "same", edit, func(r *Row) { r.Addressed = true }, change(Change{Target: sent, Subject: sent}))),
			"SupersedeNotes{Row:4 Target:}; 4 observed/edit_note main"},
		{"edit of nothing", facts(row(4, "new", verb(msg.VerbEdit), change(Change{}))), "4 dropped/edit_orphan"},
		{"edit that fires", facts(row(4, "@bot hi", verb(msg.VerbEdit), change(Change{Target: routed, Subject: routed}), fires)), "turn main [4]"},

		{"no answer", facts(row(1, "a", unanswered), row(2, "b"), row(3, "/ping", command)),
			"Wait{Row:1 For:routd}; Wait{Row:2 For:routd}; 3 command/command; Reply{Row:3 Source:command Text:pong}"},
		{"not admitted", facts(row(1, "a", to(closed)), row(2, "b")), "1 dropped/no_access; turn main [2]"},
		{"not admitted, beside held rows", facts(row(1, "a", quiet), row(2, "b", quiet, received(now-1), to(closed))), "2 dropped/no_access; Hold{Row:1 Until:1000005000}"},
		{"not admitted, observed", facts(row(1, "a", to(closed), observed)), "1 dropped/no_access"},
		{"not admitted, without routd's answer", facts(row(1, "a", unanswered)), "Wait{Row:1 For:routd}"},
		{"not admitted, and claims for the next", facts(row(1, "a", verb(msg.VerbMention), to(closed)), row(2, "b", verb(msg.VerbMention), to(closed)),
			row(3, "c", engaged), row(4, "d")), "1 dropped/no_access; 2 dropped/no_access"},
		{"not admitted, and claims nothing", facts(row(1, "a", to(closed)), row(2, "b", engaged)), "1 dropped/no_access; turn main [2]"},
		{"not admitted, an operator", facts(row(1, "a", to(closed), operator)), "turn main [1]"},
		{"not admitted to the group of a prefix", facts(row(1, "@eng ship", func(r *Row) { r.Group = closed })), "1 dropped/no_access"},
		{"not admitted to the group of the chat", facts(row(1, "@eng ship", func(r *Row) { r.Home = closed })), "1 dropped/no_access"},
		{"reaction of a sender not admitted", facts(row(1, "👍", verb(msg.VerbReaction), to(closed))), "1 dropped/no_access"},
		{"ping of a sender not admitted", facts(row(2, "/ping", command, to(closed))), "2 command/command; Reply{Row:2 Source:command Text:pong}"},
		{"new of a sender not admitted", facts(row(1, "a", quiet), row(2, "/new go", command, to(closed))), "2 dropped/no_access; Hold{Row:1 Until:1000005000}"},
		{"stop of a sender not admitted", facts(row(2, "/stop", command, to(closed))), "2 dropped/no_access"},
		{"status of a sender not admitted", facts(row(2, "/status", command, to(closed))), "2 dropped/no_access"},
		{"token of a sender not admitted", facts(row(1, "a", quiet), row(2, "#fix", to(closed))), "2 dropped/no_access; Hold{Row:1 Until:1000005000}"},
		{"stop where others have turns", requested(Request{}, row(2, "/stop", command, foreign, func(r *Row) { r.Answer.Home = "" })),
			"2 command/command; Reply{Row:2 Source:command Text:" + textNoGroup + "}"},
		{"stop where others have turns, without an answer", facts(row(2, "/stop", command, foreign, unanswered)), "Wait{Row:2 For:routd}"},
		{"edit of a sender not admitted", facts(row(4, "new", verb(msg.VerbEdit), to(closed), change(Change{Target: routed, Subject: routed}))), "4 dropped/no_access"},
		{"deletion of a sender not admitted", facts(row(4, "", verb(msg.VerbDelete), to(closed), change(Change{Target: routed, Subject: routed}))),
			"SupersedeNotes{Row:4 Target:}; 4 observed/edit_note main; EndObjects{Row:4 Messages:[3]}"},
		{"deletion of an answer", facts(row(4, "", verb(msg.VerbDelete), change(Change{Target: reply, Subject: reply}))), "4 dropped/edit_orphan; EndObjects{Row:4 Messages:[2]}"},
		{"no reach", facts(row(1, "@eng ship", to(&groupconfig.Members{OwnGroup: true})), row(2, "@eng", to(&groupconfig.Members{OwnGroup: true}))), "turn main [1 2]"},
		{"no pins", facts(row(1, "a", quiet), row(2, "#fix", to(noPins))),
			"2 dropped/pin_denied; Reply{Row:2 Source:command Text:" + textNoPins + "}; Hold{Row:1 Until:1000005000}"},
		{"pin of an operator", facts(row(1, "#fix", to(noPins), operator)),
			"1 sticky/sticky_topic; PinTopic{Row:1 Topic:#fix}; Reply{Row:1 Source:command Text:topic → fix}"},

		{"one turn left for rows of one turn", facts(row(1, "a", left(1)), row(2, "b", left(1))), "turn main [1 2]"},
		{"one turn left for two", facts(row(1, "a", left(1)), row(2, "#fix b", left(1)), row(3, "#go c", left(1))),
			"2 dropped/rate_limit; " + rateReply(2) + "; 3 dropped/rate_limit; turn main [1]"},
		{"none left, and notified", facts(row(1, "a", left(0), func(r *Row) { r.Quota.Notified = true })), "1 dropped/rate_limit"},
		{"none left, an edit that fires", facts(row(1, "a", verb(msg.VerbEdit), change(Change{}), fires, left(0))), "1 dropped/rate_limit"},
		{"none left, an operator", facts(row(1, "a", left(0), operator)), "turn main [1]"},
		{"none left, a bot", facts(row(1, "a", left(0), func(r *Row) { r.IsBot = true })), "1 dropped/rate_limit"},
		{"none left, observed", facts(row(1, "a", left(0), observed)), "1 observed/route_observe main"},
		{"none left for another sender", facts(row(1, "a", left(0)), row(2, "b", left(5), func(r *Row) { r.Sender = "telegram:8" })),
			"1 dropped/rate_limit; " + rateReply(1) + "; turn main [2]"},
		{"none left for the text of new", facts(row(2, "/new go", command, left(0))), "2 dropped/rate_limit; " + rateReply(2)},
		{"none left, new without text", facts(row(2, "/new", command, left(0))),
			"2 command/command main; ResetSession{Row:2 Folder:main Topic:}; Reply{Row:2 Source:command Text:new session}"},
		{"a bot in a loop", facts(row(1, "a", func(r *Row) { r.IsBot, r.BotTurns = true, maxBotTurns })), "1 observed/bot_loop main"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, effects := Step(State{}, tt.f)
			diff(t, "effects", said(effects), tt.want)
		})
	}
}

func TestStep_RoutdSlowOrAway_OnlyCommandsThatNeedNoAnswer(t *testing.T) {
	t.Parallel()
	rows := func() []Row {
		return []Row{
			row(1, "a", unanswered), row(2, "/ping", command, unanswered), row(3, "#fix", unanswered), row(4, "/new go", command, unanswered),
			row(5, "/status", command, unanswered),
		}
	}
	want := "Wait{Row:1 For:routd}; 2 command/command; Reply{Row:2 Source:command Text:pong}; Wait{Row:3 For:routd}; Wait{Row:4 For:routd}; "
	for state, want := range map[Routd]string{
		RoutdSlow: want + "Wait{Row:5 For:routd}",
		RoutdAway: want + "AskService{Row:5 Service:dashd RouteID:0 Folder: Operator:false}",
	} {
		f := facts(rows()...)
		f.Routd = state
		before := State{Gate: impulseGate{ThroughID: 0, Count: 2}}
		next, effects := Step(before, f)
		diff(t, "effects", said(effects), want)
		if next.Gate != before.Gate {
			t.Errorf("the gate has changed: %+v", next)
		}
	}
	f := facts(row(1, "a", unanswered), row(2, "/stop", command, unanswered))
	for _, f.Routd = range []Routd{RoutdSlow, RoutdAway} { // in whatever group the chat is
		next, effects := Step(State{}, f)
		diff(t, "stop acts on the chat alone", said(effects[1:3]), "StopChat{Row:2 By:telegram:7 ThreadID: Topic: OneTopic:false Only: Except:[2] Own:false}; StopParked{Row:2 ThreadID: Sender:telegram:7}")
		if !next.Again {
			t.Errorf("state %+v", next)
		}
	}
}

func TestStep_Barrier_ReleasesWhatEarlierStepsHeld(t *testing.T) {
	t.Parallel()
	first := facts(row(1, "a", quiet))
	held, effects := Step(State{}, first)
	diff(t, "effects", said(effects), "Hold{Row:1 Until:1000005000}")
	next, effects := Step(held, facts(row(2, "#fix")))
	if len(effects) != 0 || next != (State{Release: ReleaseAll, Again: true}) {
		t.Fatalf("%+v, %s", next, said(effects))
	}
	next, effects = Step(next, facts(row(1, "a", quiet), row(2, "#fix")))
	diff(t, "effects", said(effects),
		"turn main [1]; 2 sticky/sticky_topic; PinTopic{Row:2 Topic:#fix}; Reply{Row:2 Source:command Text:topic → fix}")
	diff(t, "state", next, State{Again: true})
}

func TestStep_GroupKey_RowsAreOneTurn(t *testing.T) {
	t.Parallel()
	album := func(id, at int64) Row { return row(id, "pic", received(at), keyed("album")) }
	f := facts(row(1, "before"), album(2, now), album(3, now))
	next, effects := Step(State{}, f)
	diff(t, "effects", said(effects), "Hold{Row:2 Until:1000001000}; Hold{Row:3 Until:1000001000}; turn main [1]")
	if next.Due != now+groupQuietMS || next.Gate.Count != 2 {
		t.Fatalf("state %+v", next)
	}
	f = facts(album(4, now+900))
	f.Now = now + 900
	next, _ = Step(next, f)
	if next.Due != now+1900 {
		t.Fatalf("state %+v", next)
	}
	late := facts()
	late.Now, late.Last = next.Due, 4
	if next, _ = Step(next, late); next.Release != ReleaseDue || !next.Again {
		t.Fatalf("state %+v", next)
	}
	f = facts(album(2, now), album(3, now), album(4, now+900))
	f.Now = late.Now
	_, effects = Step(next, f)
	diff(t, "effects", said(effects), "turn main [2 3 4]")
}

func TestStep_GroupKey_EndlessGroup_IsHeldFiveSeconds(t *testing.T) {
	t.Parallel()
	var g impulseGate
	at := now
	for ; !g.due(at); at += 500 {
		g.add(at, at, 100, impulse(), "album", groupUntil(now, at))
	}
	if at != now+groupMaxHoldMS {
		t.Errorf("released after %d ms", at-now)
	}
}

func TestStep_Claims_CallsAndEngagedRows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		r    Row
		want bool
	}{
		"a mention":           {row(1, "a", verb(msg.VerbMention)), true},
		"a reply":             {row(1, "a", verb(msg.VerbReply)), true},
		"in an open window":   {row(1, "a", func(r *Row) { r.Answer.Engaged = true }), true},
		"routed by the table": {row(1, "a"), false},
		"a reaction": {row(1, "👍", verb(msg.VerbReaction), func(r *Row) {
			r.Answer.Engaged, r.Answer.Impulse.Threshold, r.Answer.Impulse.Weights = true, 0, map[string]int{"reaction": 50}
		}), false},
	} {
		_, effects := Step(State{}, facts(tt.r))
		if turn := effects[0].(StoreTurn).Turn; turn.ClaimsEngagement != tt.want {
			t.Errorf("%s: claims %v", name, turn.ClaimsEngagement)
		}
	}
	_, effects := Step(State{}, facts(row(1, "a", verb(msg.VerbMention)), row(2, "b", func(r *Row) { r.Answer.Engaged = true })))
	if s := effects[0].(StoreTurn); s.Trigger != 0 || s.Turn.ReplyTo != "p1" {
		t.Errorf("the turn answers %+v", s)
	}
}

func TestStep_EscalationsAnswer_SharesNoTurnWithAUsersRow(t *testing.T) {
	t.Parallel()
	back := row(1, "the answer", func(r *Row) {
		r.ChatJID = "group:main" // where no user sees it
		r.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Answer, Folder: "main", ChatJID: chat, RootTurnID: 5, Depth: 2}
		r.Return, r.Answer = &Return{Registered: true, RootExists: true}, ReturnAnswer(r, true, impulse())
	})
	_, effects := Step(State{}, facts(back, row(2, "hi")))
	diff(t, "effects", said(effects), "turn main [1]; turn main [2]")
	if turn := effects[0].(StoreTurn).Turn; turn.Depth != 2 || turn.RootTurnID != 5 || turn.ChatJID != chat {
		t.Errorf("turn %+v", turn)
	}
}

func TestStep_Forwarded_IsBounded(t *testing.T) {
	t.Parallel()
	sent := func(id int64, depth, fan int, ok bool) Row {
		return row(id, "do it", func(r *Row) {
			r.ChatJID = "group:main/eng"
			r.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Delegation, Folder: "main", ChatJID: chat, RootTurnID: 5, Depth: depth}
			r.SetReturn(&Return{RootExists: ok, Fan: fan})
			r.Answer = ReturnAnswer(r, true, impulse())
		})
	}
	_, effects := Step(State{}, facts(sent(1, 1, 0, true), sent(2, msg.MaxDelegationDepth+1, 0, true), sent(3, 1, msg.MaxDelegations-1, true), sent(4, 1, 0, false)))
	diff(t, "effects", said(effects), "4 dropped/bad_row; 2 dropped/fan_out; 3 dropped/fan_out; turn main/eng#d1 [1]")
}

func TestSetReturn_InvalidAddress_BreaksTheRow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind   msg.ReturnKind
		chat   string
		depth  int
		read   Return
		breaks bool
	}{
		"a delegation":          {msg.Delegation, chat, 1, Return{RootExists: true}, false},
		"an escalation":         {msg.Escalation, chat, 1, Return{RootExists: true}, false},
		"an answer":             {msg.Answer, chat, 1, Return{RootExists: true, Registered: true}, false},
		"no chat":               {msg.Delegation, "", 1, Return{RootExists: true}, true},
		"no address":            {msg.Delegation, "nowhere", 1, Return{RootExists: true}, true},
		"an unknown kind":       {"gossip", chat, 1, Return{RootExists: true}, true},
		"an unknown root":       {msg.Delegation, chat, 1, Return{}, true},
		"an answer to no group": {msg.Answer, chat, 1, Return{RootExists: true}, true},
		"a negative depth":      {msg.Delegation, chat, -100, Return{RootExists: true}, true},
	} {
		r := row(1, name, func(r *Row) {
			r.ForwardedFrom = &msg.ReturnAddress{Kind: tt.kind, ChatJID: tt.chat, RootTurnID: 5, Depth: tt.depth}
		})
		r.SetReturn(&tt.read)
		if breaks := r.Kind == KindBroken; breaks != tt.breaks {
			t.Errorf("%s: kind %d", name, r.Kind)
		}
	}
}

func TestStep_InjectedRow_IsDecidedLikeAUsersAndKeepsTheChain(t *testing.T) {
	t.Parallel()
	injected := func(id int64, text string, depth int, rootExists bool) Row {
		return row(id, text, func(r *Row) {
			r.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Injection, RootTurnID: 5, Depth: depth}
			if strings.HasPrefix(text, "/") {
				command(r)
			}
			r.SetReturn(&Return{RootExists: rootExists})
		})
	}
	for text, want := range map[string]string{
		"go on":         "turn main [1]",
		"@eng go on":    "1 prefix/prefix_group main/eng; turn main/eng [1=go on]",
		"#deploy go on": "1 prefix/prefix_topic main; turn main#deploy [1=go on]",
		"/new go on":    "1 command/command main; ResetSession{Row:1 Folder:main Topic:}; turn main [1=go on]",
	} {
		_, effects := Step(State{}, facts(injected(1, text, 2, true)))
		diff(t, text, said(effects), want)
		if turn := effects[len(effects)-1].(StoreTurn).Turn; turn.Depth != 2 || turn.RootTurnID != 5 {
			t.Errorf("%q: turn %+v", text, turn)
		}
	}
	_, effects := Step(State{}, facts(injected(1, "hi", 1, false), injected(2, "hi", -1, true), injected(3, "/ping", msg.MaxDelegationDepth+1, true)))
	diff(t, "effects", said(effects), "1 dropped/bad_row; 2 dropped/bad_row; 3 dropped/bad_row")
}

func TestStep_PendingFiles_AreWantedByTheTurn(t *testing.T) {
	t.Parallel()
	pending := func(r *Row) { r.PendingFiles = 1 }
	_, effects := Step(State{}, facts(row(1, "look", pending), row(2, "seen", pending, observed), row(3, "@eng this", pending)))
	for _, e := range effects {
		if s, ok := e.(StoreTurn); ok && !s.Entries[0].Files {
			t.Errorf("%+v", s)
		}
	}
}

func TestStep_Panic_DropsTheRowItWasAbout(t *testing.T) {
	t.Parallel()
	f := facts(row(1, "a"), row(2, "b"), row(3, "c"))
	f.Rows[1].Kind, f.Rows[1].ForwardedFrom = KindForwarded, &msg.ReturnAddress{Kind: msg.Delegation} // without its facts
	next, effects := Step(State{}, f)
	if len(effects) != 1 || !next.Again {
		t.Fatalf("%+v, %s", next, said(effects))
	}
	d := effects[0].(Decide)
	if d.Row != 2 || d.Reason != msg.ReasonBadRow || !strings.HasPrefix(d.Error, "panic: ") || !strings.Contains(d.Error, "forwarded") {
		t.Errorf("%+v", d)
	}
}

func TestStep_TurnLimits_MakeAnotherTurn(t *testing.T) {
	t.Parallel()
	var rows []Row
	for i := range int64(msg.MaxTurnRows + 1) {
		rows = append(rows, row(i+1, "x"))
	}
	big := strings.Repeat("x", msg.MaxTurnBytes-10)
	rows = append(rows, row(500, big), row(501, "fits"), row(502, "more than fits"))
	_, effects := Step(State{}, facts(rows...))
	var sizes []int
	for _, e := range effects {
		sizes = append(sizes, len(e.(StoreTurn).Entries))
	}
	diff(t, "rows per turn", sizes, []int{msg.MaxTurnRows, 3, 1})
}

func TestStep_Forks_RowsOfTheirGroup(t *testing.T) {
	open := &msg.Fork{Topic: "#fix", Folder: "main", ThreadID: "7", OwnThread: true}
	ended := &msg.Fork{Topic: "#fix", Folder: "main", ThreadID: "7", OwnThread: true, EndedAt: 5}
	endedBelow := &msg.Fork{Topic: "#deploy#fix", Folder: "main", ThreadID: "7", OwnThread: true, EndedAt: 5}
	inside := &msg.Fork{Topic: "#fix#fix", Folder: "main", ThreadID: "7"}
	others := &msg.Fork{Topic: "#other", Folder: "other", ThreadID: "7"}
	for _, tt := range []struct {
		text, bound, pin, want string
		forks                  []*msg.Fork
	}{
		{text: "Tuesday", want: "turn main7 [1]"},
		{text: "Tuesday", forks: []*msg.Fork{open}, want: "turn main#fix [1]"},
		{text: "Tuesday", forks: []*msg.Fork{inside, open}, want: "turn main#fix#fix [1]"},
		{text: "Tuesday", forks: []*msg.Fork{others, open}, want: "turn main#fix [1]"},
		{text: "Tuesday", forks: []*msg.Fork{others}, want: "turn main7 [1]"},
		{text: "Tuesday", forks: []*msg.Fork{others}, bound: "#deploy", want: "turn main#deploy [1]"},
		{text: "Tuesday", forks: []*msg.Fork{open}, bound: "#deploy", want: "turn main#fix [1]"},
		{text: "Tuesday", forks: []*msg.Fork{ended}, want: "turn main [1]"},
		{text: "Tuesday", forks: []*msg.Fork{endedBelow}, want: "turn main#deploy [1]"},
		{text: "Tuesday", forks: []*msg.Fork{open}, pin: "#pinned", want: "turn main#pinned [1]"},
		{text: "Tuesday", forks: []*msg.Fork{ended}, pin: "#pinned", want: "turn main#pinned [1]"},
		{text: "#ops Tuesday", forks: []*msg.Fork{open}, want: "1 prefix/prefix_topic main; turn main#ops [1=Tuesday]"},
		{text: "@eng Tuesday", forks: []*msg.Fork{open}, want: "1 prefix/prefix_group main/eng; turn main/eng7 [1=Tuesday]"},
	} {
		f := facts(row(1, tt.text, func(r *Row) {
			r.ThreadID, r.Topic, r.Forks, r.Bound = "7", "7", tt.forks, tt.bound
			if strings.HasPrefix(tt.text, "@eng") {
				r.Answer.Folder = "main/eng"
			}
		}))
		f.Chat.StickyTopic = tt.pin
		_, effects := Step(State{}, f)
		diff(t, tt.text, said(effects), tt.want)
	}
}

// A delivery of a hook is no post that an answer could reply to, and is answered where its group's config says.
func TestStep_Delivery_IsAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		to, thread string
		want       msg.Turn
	}{
		"nowhere":  {"", "", msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "hook:main.k", ThreadID: "x-1", Topic: "#x-1", Place: "x-1", Surface: "telegram-dm", CreatedAt: now}},
		"a chat":   {"web:main", "", msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "web:main", Topic: "#x-1", Place: "#x-1", Surface: "telegram-dm", CreatedAt: now}},
		"a thread": {"slack:C1", "17.2", msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "slack:C1", ThreadID: "17.2", Topic: "#x-1", Place: "17.2", Surface: "telegram-dm", CreatedAt: now}},
	} {
		f := facts(row(1, "Webhook ci: push", func(r *Row) {
			r.ChatJID, r.Sender, r.Topic, r.ThreadID, r.Answer.To, r.Answer.ThreadID = "hook:main.k", "hook:main.k", "#x-1", "x-1", tt.to, tt.thread
			r.Home = closed
			r.Group = &groupconfig.Members{Roles: closed.Roles, Hooks: []string{"k"}} // which admits its own hooks
		}))
		_, effects := Step(State{}, f)
		if len(effects) != 1 {
			t.Fatalf("%s: %s", name, said(effects))
		}
		diff(t, name, effects[0].(StoreTurn).Turn, tt.want)
	}
}
