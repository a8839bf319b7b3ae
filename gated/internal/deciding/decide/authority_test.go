package decide

import (
	"strings"
	"testing"

	"arizuko/gated/internal/authority"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// payer makes a row one that an agent wrote on behalf of a sender.
func payer(sender string) func(*Row) {
	return func(r *Row) { r.Sender, r.OnBehalfOf = "agent:main", sender }
}

func injected(r *Row) {
	r.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Injection, RootTurnID: 5, Depth: 1}
	r.SetReturn(&Return{RootExists: true})
}

func elsewhere(r *Row) { r.SetReturn(&Return{RootExists: true, Elsewhere: true}) }

func delegated(kind msg.ReturnKind) func(*Row) {
	return func(r *Row) {
		r.ChatJID = "group:main/eng"
		r.ForwardedFrom = &msg.ReturnAddress{Kind: kind, Folder: "main", ChatJID: chat, RootTurnID: 5, Depth: 1}
		r.Return = &Return{RootExists: true, Registered: true}
		r.Answer = ReturnAnswer(r, true, impulse())
	}
}

// TestStep_OfAnAgent_ActsWithTheAuthorityOfItsOrigin: as a group's access and rate say of the sender who caused it.
func TestStep_OfAnAgent_ActsWithTheAuthorityOfItsOrigin(t *testing.T) {
	t.Parallel()
	closed := func(r *Row) {
		r.Group = &groupconfig.Members{Roles: groupconfig.Roles{Ask: groupconfig.Role{{Who: "telegram:1"}}}}
	}
	forOperator := func(r *Row) { r.ForOperator = true }
	for name, tc := range map[string]struct {
		row  Row
		want string
	}{
		"delegation, admitted":      {row(1, "go", delegated(msg.Delegation), payer("telegram:1"), closed), "turn main/eng#d1 [1]"},
		"delegation, not admitted":  {row(1, "go", delegated(msg.Delegation), payer("telegram:5"), closed), "1 dropped/no_access"},
		"delegation, operator":      {row(1, "go", delegated(msg.Delegation), payer("telegram:5"), closed, forOperator), "turn main/eng#d1 [1]"},
		"escalation, not admitted":  {row(1, "go", delegated(msg.Escalation), payer("telegram:5"), closed), "1 dropped/no_access"},
		"answer to what was asked":  {row(1, "go", delegated(msg.Answer), payer("telegram:5"), closed, left(0)), "turn main [1]"},
		"delegation, over the rate": {row(1, "go", delegated(msg.Delegation), payer("telegram:5"), left(0)), "1 dropped/rate_limit"},
		"injection, admitted":       {row(1, "go", injected, payer("telegram:1"), closed), "turn main [1]"},
		"injection, not admitted":   {row(1, "go", injected, payer("telegram:5"), closed), "1 dropped/no_access"},
		"injection, over the rate":  {row(1, "go", injected, payer("telegram:5"), left(0)), "1 dropped/rate_limit; " + rateReply(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, effects := Step(State{}, facts(tc.row))
			diff(t, "effects", said(effects), tc.want)
		})
	}
}

// TestStep_InjectedToken_PinsAsItsOriginMay: a bare token, or a command, is plain text in a chat in which the origin has not
// written; a name or topic before a text is about that text alone.
func TestStep_InjectedToken_PinsAsItsOriginMay(t *testing.T) {
	t.Parallel()
	forOperator := func(r *Row) { r.ForOperator = true }
	noPins := to(&groupconfig.Members{NoPins: true})
	for name, tc := range map[string]struct {
		row  Row
		want string
	}{
		"own chat":                       {row(1, "#x", injected, payer("telegram:5")), "1 sticky/sticky_topic; PinTopic{Row:1 Topic:#x}; Reply{Row:1 Source:command Text:topic → x}"},
		"own chat, operators pin":        {row(1, "#x", injected, payer("telegram:5"), noPins), "1 dropped/pin_denied; Reply{Row:1 Source:command Text:Only operators may pin this chat.}"},
		"elsewhere":                      {row(1, "#x", injected, payer("telegram:5"), elsewhere), "turn main [1]"},
		"elsewhere, clears":              {row(1, "#", injected, payer("telegram:5"), elsewhere), "turn main [1]"},
		"elsewhere, a group":             {row(1, "@eng", injected, payer("telegram:5"), elsewhere), "turn main [1]"},
		"elsewhere, for an operator":     {row(1, "#x", injected, payer("telegram:5"), elsewhere, forOperator, noPins), "1 sticky/sticky_topic; PinTopic{Row:1 Topic:#x}; Reply{Row:1 Source:command Text:topic → x}"},
		"elsewhere, topic before a text": {row(1, "#x go", injected, payer("telegram:5"), elsewhere), "1 prefix/prefix_topic main; turn main#x [1=go]"},
		"elsewhere, a command":           {row(1, "/stop", injected, payer("telegram:5"), command, elsewhere), "turn main [1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.row.Answer.Action, tc.row.Answer.Reason, tc.row.Answer.Folder = routeapi.Trigger, msg.ReasonRoute, "main"
			_, effects := Step(State{}, facts(tc.row))
			diff(t, "effects", said(effects), tc.want)
		})
	}
}

// TestStep_TurnsOfAnAgent_CountForTheirOrigin has rows of three origins for two turns each.
func TestStep_TurnsOfAnAgent_CountForTheirOrigin(t *testing.T) {
	t.Parallel()
	one := left(1)
	_, effects := Step(State{}, facts(
		row(1, "#a go", one, injected, payer("telegram:5")), row(2, "#b go", one, injected, payer("telegram:6")), row(3, "#c go", one, injected, payer("telegram:5")),
	))
	diff(t, "effects", said(effects), "1 prefix/prefix_topic main; 2 prefix/prefix_topic main; 3 dropped/rate_limit; "+rateReply(3)+"; turn main#a [1=go]; turn main#b [2=go]")
}

// sent are commands that were answered, n of them at a time.
func sent(n int, at, dropped int64) *Commands {
	c := &Commands{DroppedAt: dropped}
	for range n {
		c.Answered = append(c.Answered, at)
	}
	return c
}

func TestCommands_MoreThanTheLimit_DroppedWithOneNotice(t *testing.T) {
	t.Parallel()
	const now = 10 * authority.RateTime
	pin := func(r *Row) { r.Pin = &Pin{Sticky: layers.Sticky{Sigil: layers.TopicSigil, Name: "fix"}} }
	for name, tc := range map[string]struct {
		before *Commands
		set    func(*Row)
		n      int
		want   string // of each row: a(nswered), d(ropped), D(ropped with a notice)
	}{
		"few":                          {sent(0, 0, 0), command, 3, "aaa"},
		"an operator's":                {nil, command, 30, strings.Repeat("a", 30)},
		"many at once":                 {sent(0, 0, 0), command, 23, strings.Repeat("a", 20) + "Ddd"},
		"many before":                  {sent(19, now-CommandTime+1, 0), command, 3, "aDd"},
		"many before, a minute ago":    {sent(30, now-CommandTime, 0), command, 2, "aa"},
		"many of a clock ahead":        {sent(30, now+1, 0), command, 2, "aa"},
		"notified lately":              {sent(20, now-1, now-authority.RateTime+1), command, 2, "dd"},
		"notified an hour ago":         {sent(20, now-1, now-authority.RateTime), command, 2, "Dd"},
		"many pins":                    {sent(20, now-1, 0), pin, 1, "D"},
		"commands of members kept out": {sent(20, now-1, 0), func(r *Row) { command(r); to(closed)(r) }, 1, "n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "/ping"
			if name == "many pins" {
				text = "#fix"
			}
			if name == "commands of members kept out" {
				text = "/stop"
			}
			var rows []Row
			for i := range tc.n {
				r := row(int64(i+1), text, tc.set)
				r.ReceivedAt, r.Commands = now, tc.before
				rows = append(rows, r)
			}
			got, notices := map[int64]string{}, map[int64]bool{}
			_, effects := Step(State{}, facts(rows...))
			for _, e := range effects {
				switch e := e.(type) {
				case Decide:
					got[e.Row] = map[msg.Reason]string{msg.ReasonCommand: "a", msg.ReasonCommandLimit: "d", msg.ReasonNoAccess: "n"}[e.Reason]
				case Reply:
					notices[e.Row] = e.Source == msg.SourceNotice && e.Text == textCommandLimit
				}
			}
			all := ""
			for i := range rows {
				fate := got[rows[i].ID]
				if notices[rows[i].ID] {
					fate = strings.ToUpper(fate)
				}
				all += fate
			}
			if all != tc.want {
				t.Errorf("fates %s, want %s", all, tc.want)
			}
		})
	}
}

// An operator who asks why a row was dropped reads which group's setting, or which route, has decided.
func TestStep_DroppedBySetting_SaysWhich(t *testing.T) {
	t.Parallel()
	byRoute := func(r *Row) { ignored(r); r.Answer.RouteID = 3 }
	pinned := func(r *Row) { r.Home, r.Group = nil, nil }
	for want, f := range map[string]*Facts{
		"the role ask of group main does not list telegram:7":                facts(row(1, "hi", to(closed))),
		"the role ask of group main does not list telegram:8":                facts(row(1, "hi", to(closed), func(r *Row) { r.Sender = "telegram:8" })),
		"the config of group main has rate 2, for telegram:7; the next turn": facts(row(1, "hi", left(0))),
		"route 3 leads to builtin:drop":                                      facts(row(1, "hi", byRoute)),
		"the role ask of group main/eng does not":                            facts(row(1, "@eng", pinned)),
	} {
		for i := range f.Rows {
			if p := f.Rows[i].Pin; p != nil {
				p.Members = closed
			}
		}
		_, effects := Step(State{}, f)
		found := ""
		for _, e := range effects {
			if d, ok := e.(Decide); ok {
				found = d.Error
			}
		}
		if !strings.HasPrefix(found, want) {
			t.Errorf("%q, want %q", found, want)
		}
	}
}
