package msg

import "testing"

func TestEngagement_Open(t *testing.T) {
	window := Engagement{Folder: "acme", At: 100, Until: 200}
	changed := func(change func(*Engagement)) Engagement {
		e := window
		change(&e)
		return e
	}
	for name, tc := range map[string]struct {
		e            Engagement
		at, pinnedAt int64
		open         bool
	}{
		"inside":                         {window, 150, 0, true},
		"before it began, decided later": {window, 50, 0, true},
		"the last moment":                {window, 199, 0, true},
		"its end":                        {window, 200, 0, false},
		"no group":                       {changed(func(e *Engagement) { e.Folder = "" }), 150, 0, false},
		"nothing stored":                 {Engagement{ChatJID: "slack:C1"}, 0, 0, false},
		"ended before it began":          {changed(func(e *Engagement) { e.EndedAt = 99 }), 150, 0, true},
		"ended when it began":            {changed(func(e *Engagement) { e.EndedAt = 100 }), 150, 0, false},
		"pinned before it began":         {window, 150, 99, true},
		"pinned since":                   {window, 150, 101, false},
		"the later of both counts":       {changed(func(e *Engagement) { e.EndedAt = 10 }), 150, 101, false},
	} {
		if got := tc.e.Open(tc.at, tc.pinnedAt); got != tc.open {
			t.Errorf("%s: open %t", name, got)
		}
	}
}
