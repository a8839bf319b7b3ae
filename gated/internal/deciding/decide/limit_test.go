package decide

import (
	"strings"
	"testing"

	"arizuko/gated/internal/authority"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
)

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
		"the config of group main has access, which does not list telegram:7": facts(row(1, "hi", to(closed))),
		"the config of group main has access, which does not list telegram:8": facts(row(1, "hi", to(closed), func(r *Row) { r.Sender = "telegram:8" })),
		"the config of group main has rate 2, for telegram:7; the next turn":  facts(row(1, "hi", left(0))),
		"route 3 leads to builtin:drop":                                       facts(row(1, "hi", byRoute)),
		"the config of group main/eng has access, which does not":             facts(row(1, "@eng", pinned)),
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
