package main

import (
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

// Whatever an agent does, its turn ends with one clear result, and soon.
func TestHostile_Turn_HasOneClearResult(t *testing.T) {
	for order, tt := range map[string]struct {
		answer string
		kind   agentproto.Kind // of the failure, if there is no answer
		want   string
	}{
		"hostile texts":            {answer: "fine"},
		"hostile decimal id":       {answer: "fine"},
		"hostile many calls":       {answer: strings.Repeat(".\n\n", 9999) + strings.Repeat(".", 12000-9999)},
		"hostile nameless error":   {kind: agentproto.KindTransient, want: "Parse error"},
		"hostile error without id": {kind: agentproto.KindTransient, want: "Invalid Request"},
		"hostile deaf":             {kind: agentproto.KindTransient, want: "it did not read its stdin"},
		"hostile child":            {kind: agentproto.KindTransient, want: "exited during a turn: exit status 3"},
		"stop a_new_reason":        {kind: agentproto.KindTransient, want: "ended the turn without an answer (a_new_reason)"},
		"stop a_new_reason words":  {answer: "words"},
	} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			s := fake(t).open()
			s.Send(agenttest.First("1", "", order))
			if tt.answer != "" {
				s.WantAnswer("1", tt.answer)
				s.Send(agenttest.Further("2", "say more"))
				s.WantAnswer("2", "more")
				s.wantExit(0)
				return
			}
			s.WantError("1", tt.kind, tt.want)
			s.wantExit(1)
		})
	}
}

// A user can stop a turn of an agent that says nothing that can be read.
func TestHostile_HalfALine_CanBeStopped(t *testing.T) {
	t.Parallel()
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "say hello"), agenttest.Further("2", "hostile half a line"))
	s.WantAnswer("1", "hello")
	s.Send(agentproto.Interrupt{}, agenttest.Further("3", "recall"))
	if f := s.Next(); !strings.HasPrefix(f.Result, "Before: say hello") {
		t.Errorf("got %+v", f)
	}
	s.wantExit(0)
}

// What users are not asked is denied, and what they are asked can be answered, however large it is.
func TestHostile_Permission_IsAnswered(t *testing.T) {
	const cancelled, denied = `{"outcome":{"outcome":"cancelled"}}`, `{"outcome":{"optionId":"no","outcome":"selected"}}`
	for kind, tt := range map[string]struct {
		reply string // of the users, "" if they are not asked
		want  string
	}{
		"none": {want: cancelled}, "unknown": {want: cancelled}, "same id": {want: denied},
		"numbers": {want: cancelled}, "another session": {want: cancelled},
		"same id to deny": {want: cancelled},
		"thousand":        {"Allow once", `{"outcome":{"optionId":"once","outcome":"selected"}}`},
		"large":           {"Deny", denied},
		"deep":            {"Deny", denied},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := fake(t).open()
			s.Send(agenttest.First("1", "", "allowing "+kind))
			if tt.reply != "" {
				s.Reply("1", s.Question(), tt.reply)
			}
			s.WantAnswer("1", tt.want)
			if asked := s.questions(); asked > 0 != (tt.reply != "") {
				t.Errorf("asked %d times", asked)
			}
			s.wantExit(0)
		})
	}
}
