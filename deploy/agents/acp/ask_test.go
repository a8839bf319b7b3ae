package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/agents/internal/permission"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/agentproto/agenttest"
)

// permitted is the fake agent's request as users see it.
const permitted = `tool, as the agent calls it: "Run it"
kind, as the agent calls it: "execute"
option, as the agent calls it: "Once"
input:
  command: rm x`

func TestPermission_UsersDecide(t *testing.T) {
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "permit rm x"))
	a := s.Question()
	if a.Question != `May I use "Run it" in this way?` || a.Detail != permitted || a.PayloadHash == "" || strings.Join(a.Options, "|") != "Allow once|Deny" || a.Allow != "Allow once" || a.Check() != nil {
		t.Errorf("asked %+v", a)
	}
	s.Reply("1", a, "Allow once")
	s.WantAnswer("1", "permission: selected once")
	s.Send(agenttest.Further("2", "permit rm x"))
	b := s.Question()
	if b.ID != a.ID || b.PayloadHash != a.PayloadHash {
		t.Errorf("asked as %+v, and then as %+v", a, b)
	}
	s.Reply("2", b, "Deny")
	s.WantAnswer("2", "permission: selected no")
	s.Send(agenttest.Further("3", "permit rm y"))
	c := s.Question()
	if c.PayloadHash == a.PayloadHash {
		t.Error("another input has the same hash")
	}
	s.Send(agentproto.Answer{TurnID: "3", AskID: c.ID, Reason: agentproto.AskExpired, PayloadHash: c.PayloadHash})
	s.WantAnswer("3", "permission: selected no")
	s.Send(agenttest.Further("4", "permit rm z"))
	d := s.Question()
	s.Send(agentproto.Answer{TurnID: "4", AskID: d.ID, Option: "Allow once", Reason: agentproto.AskAnswered, PayloadHash: a.PayloadHash})
	s.WantAnswer("4", "permission: selected no") // another input was allowed
	s.wantExit(0)
}

// A request that users are not asked about is denied, and a question can be answered however large it is. Agents react
// to a denial in different ways: Codex cancels the turn, OpenCode ends it without a text. Another attempt would get the
// same.
func TestPermission_Request_IsAskedOrDenied(t *testing.T) {
	const (
		once, no, stopped = "permission: selected once", "permission: selected no", "(I have stopped here, since I may not do this.)"
		cancelled, denied = `{"outcome":{"outcome":"cancelled"}}`, `{"outcome":{"optionId":"no","outcome":"selected"}}`
	)
	for name, tt := range map[string]struct {
		order  string
		faults string
		deny   bool   // by ACP_PERMISSIONS
		reply  string // of the users, "" if they are not asked
		want   string
	}{
		"odd ids":                  {order: "permit a", faults: "noise", reply: "Allow once", want: once},
		"only for good":            {order: "permit for good", want: no}, // which a chat does not give
		"without a question":       {order: "permit rm x", deny: true, want: no},
		"stops at a no":            {order: "permit or stop", reply: "Deny", want: stopped},
		"stops, without question":  {order: "permit or stop", deny: true, want: stopped},
		"ends at a no":             {order: "permit or end", reply: "Deny", want: stopped},
		"ends, without a question": {order: "permit or end", deny: true, want: stopped},
		"no option":                {order: "allowing none", want: cancelled},
		"unknown option":           {order: "allowing unknown", want: cancelled},
		"two of one id":            {order: "allowing same id", want: denied},
		"two of one id to deny":    {order: "allowing same id to deny", want: cancelled},
		"numbers":                  {order: "allowing numbers", want: cancelled},
		"another session":          {order: "allowing another session", want: cancelled},
		"thousand options":         {order: "allowing thousand", reply: "Allow once", want: `{"outcome":{"optionId":"once","outcome":"selected"}}`},
		"large input":              {order: "allowing large", reply: "Deny", want: denied},
		"deep input":               {order: "allowing deep", reply: "Deny", want: denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env []string
			if tt.deny {
				env = append(env, "ACP_PERMISSIONS=deny")
			}
			s := fake(t, strings.Fields(tt.faults)...).open(env...)
			s.Send(agenttest.First("1", "", tt.order))
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

func TestPermission_Interrupt_CancelsTheQuestion(t *testing.T) {
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "permit rm x"))
	a := s.Question()
	s.Send(agentproto.Interrupt{}, agenttest.Further("2", "recall"))
	s.Reply("1", a, "Allow once") // too late
	s.WantAnswer("2", "Before: permit rm x")
	s.wantExit(0)
}

func TestElicitation_Choice_IsAsked(t *testing.T) {
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "choose"))
	a := s.Question()
	if a.Question != "Which one?\nColour" || strings.Join(a.Options, "|") != "red|green" || a.PayloadHash != "" {
		t.Errorf("asked %+v", a)
	}
	s.Reply("1", a, "green")
	s.WantAnswer("1", `chosen: {"action":"accept","content":{"colour":"g"}}`)
	s.Send(agenttest.Further("2", "choose"))
	b := s.Question()
	s.Send(agentproto.Answer{TurnID: "2", AskID: b.ID, Reason: agentproto.AskExpired})
	s.WantAnswer("2", `chosen: {"action":"decline"}`)
	s.Send(agenttest.Further("3", "choose text")) // a text that is needed
	s.WantAnswer("3", `chosen: {"action":"decline"}`)
	s.wantExit(0)
}

// The response to one of two requests with an id would be taken for that to the other.
func TestPermission_SameIDTwice_IsAskedOnceOrCancelled(t *testing.T) {
	t.Parallel()
	s := fake(t).open()
	s.Send(agenttest.First("1", "", "twice ls"))
	a := s.Question()
	both := func(e agentproto.Event) bool { return e.Tool != nil && e.Tool.Title == "asked twice" }
	if !slices.ContainsFunc(s.Events, both) {
		s.Until("both requests", both)
	}
	s.Reply("1", a, "Allow once")
	s.WantAnswer("1", `permission: {"outcome":{"optionId":"once","outcome":"selected"}}`)
	if asked := s.questions(); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	s.Send(agenttest.Further("2", "twice rm -rf /"))
	s.WantAnswer("2", `permission: {"outcome":{"outcome":"cancelled"}}`)
	s.wantExit(0)
}

// questions are how many were asked so far.
func (s *session) questions() (n int) {
	for _, e := range s.Events {
		if e.Ask != nil {
			n++
		}
	}
	return n
}

// The hash covers exactly the text that users see, which has a line for each thing that the agent says.
func TestPermission_Fields_AreShown(t *testing.T) {
	t.Parallel()
	request := func(call string, known tool) string {
		var p permissionRequest
		if err := json.Unmarshal([]byte(`{"toolCall":`+call+`,"options":[{"optionId":"a","kind":"allow_once","name":"Deny"}]}`), &p); err != nil {
			t.Fatal(err)
		}
		made, err := permission.New("?", p.fields(p.Call.Title, p.option("allow_once"), known)...)
		if err != nil {
			t.Fatal(err)
		}
		return made.Ask(1, func(s string) string { return s }).Detail
	}
	known := tool{Tool: agentproto.Tool{Title: "delete_all", Kind: "delete"}, input: []byte(`{"id":5}`)}
	if got, want := request(`{"title":"show","kind":"read"}`, known), `tool, as the agent calls it: "show"
tool, as the agent calls it: "delete_all"
kind, as the agent calls it: "read"
kind, as the agent calls it: "delete"
option, as the agent calls it: "Deny"
input:
  id: 5`; got != want {
		t.Errorf("shown:\n%s", got)
	}
	if got, want := request(`{"title":"edit","content":[{"type":"diff","path":"a","oldText":"x","newText":"y\nz"}],"locations":[{"path":"a","line":2}]}`, tool{}), `tool, as the agent calls it: "edit"
option, as the agent calls it: "Deny"
content:
  -
    newText:
      | y
      | z
    oldText: x
    path: a
    type: diff
locations:
  -
    line: 2
    path: a`; got != want {
		t.Errorf("shown:\n%s", got)
	}
}
