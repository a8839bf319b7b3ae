package match

import (
	"errors"
	"path"
	"strings"
	"testing"
)

func TestExpr_Matches_Events(t *testing.T) {
	group := EventOf("telegram:-1001234", "telegram:77", "Ann Lee", "")
	web := EventOf("web:acme/eng", "web:ann", "", "mention")
	tests := []struct {
		expr       string
		group, web bool
	}{
		{"", true, true},
		{" \t ", true, true},
		{"platform=telegram", true, false},
		{"platform=Telegram", false, false},
		{"room=-1001234", true, false},
		{"room=acme/*", false, true},
		{"room=*", true, false},
		{"room=*/*", false, true},
		{"chat_jid=telegram:-100*", true, false},
		{"chat_jid=*", true, false},
		{"chat_jid=web:acme/???", false, true},
		{"sender=telegram:77", true, false},
		{"sender=77", false, false},
		{"sender=Ann?Lee", true, false},
		{"sender=*Lee", true, false},
		{"sender=*nn*", true, true},
		{"sender=", false, false},
		{"verb=message", true, false},
		{"verb=", false, false},
		{"verb=m*", true, true},
		{"verb=[^m]*", false, false},
		{"platform=web verb=mention", false, true},
		{"platform=web verb=reply", false, false},
		{"  platform=telegram\n verb=message  ", true, false},
		{"room=-1001234 sender=*Lee chat_jid=telegram:* platform=t* verb=message", true, false},
	}
	for _, tt := range tests {
		expr, err := ParseMatch(tt.expr)
		if err != nil {
			t.Errorf("ParseMatch(%q): %v", tt.expr, err)
			continue
		}
		if got := expr.Matches(&group); got != tt.group {
			t.Errorf("%q matches the telegram group: %v", tt.expr, got)
		}
		if got := expr.Matches(&web); got != tt.web {
			t.Errorf("%q matches the web chat: %v", tt.expr, got)
		}
	}
}

// Pairs about senders and verbs do not matter to whether a chat can be reached.
func TestExpr_Reaches_IgnoresSenderAndVerb(t *testing.T) {
	group := EventOf("telegram:-1001234", "", "", "")
	for expr, want := range map[string]bool{
		"":                                   true,
		"platform=telegram":                  true,
		"platform=slack":                     false,
		"room=-100*":                         true,
		"room=-200*":                         false,
		"chat_jid=telegram:-1001234":         true,
		"chat_jid=telegram:-1":               false,
		"verb=mention":                       true,
		"verb=":                              true,
		"sender=telegram:77":                 true,
		"sender=":                            true,
		"sender=Ann verb=join room=-1001234": true,
		"sender=Ann verb=join room=7":        false,
		"platform=telegram room=7":           false,
	} {
		e, err := ParseMatch(expr)
		if err != nil {
			t.Fatal(err)
		}
		if e.Reaches(&group) != want {
			t.Errorf("%q reaches the group: %t", expr, !want)
		}
	}
}

// TestParseMatch_ValueWithEquals: only the first "=" divides key and glob.
func TestParseMatch_ValueWithEquals(t *testing.T) {
	expr, err := ParseMatch("room=a=b")
	if err != nil {
		t.Fatal(err)
	}
	if !expr.Matches(&Event{Room: "a=b"}) || expr.Matches(&Event{Room: "a"}) {
		t.Error("room=a=b does not ask for the room a=b")
	}
}

func TestParseMatch_Invalid_Refused(t *testing.T) {
	tests := []struct{ expr, reason string }{
		{"plattform=telegram", `unknown key "plattform"`},
		{"Platform=telegram", `unknown key "Platform"`},
		{"=telegram", `unknown key ""`},
		{"telegram", `"telegram" is not key=glob`},
		{"platform = telegram", `"platform" is not key=glob`},
		{"sender=Ann Lee", `"Lee" is not key=glob`},
		{"platform=a platform=a", "platform is given twice"},
		{"sender=a verb=b sender=c", "sender is given twice"},
		{"room=[a", "room: bad glob"},
		{"room=a[]", "room: bad glob"},
		{"room=[b-]", "room: bad glob"},
		{`room=a\`, "room: bad glob"},
		{"room=[a b]", "room: bad glob"},
		{"verb=ok room=x*[", "room: bad glob"},
		{strings.Repeat("x", 1<<20), "is not key=glob"},
	}
	for _, tt := range tests {
		expr, err := ParseMatch(tt.expr)
		if err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("ParseMatch(%.50q) = %v, %v; want an error about %s", tt.expr, expr, err, tt.reason)
			continue
		}
		if strings.Contains(tt.reason, "bad glob") && !errors.Is(err, path.ErrBadPattern) {
			t.Errorf("ParseMatch(%q) = %v, not path.ErrBadPattern", tt.expr, err)
		}
		if len(err.Error()) > 300 {
			t.Errorf("ParseMatch(%.50q): the error has %d bytes", tt.expr, len(err.Error()))
		}
	}
}

func FuzzParseMatch(f *testing.F) {
	for _, seed := range []string{"", "platform=telegram verb=m*", `room=\`, "room=[^", "sender=a=b", "x", "room=*?[a-b]\\*c"} {
		f.Add(seed, "telegram:-1001234")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		expr, err := ParseMatch(text)
		if err != nil {
			return
		}
		ev := EventOf(value, value, value, value)
		want := naive(text, &ev)
		if got := expr.Matches(&ev); got != want {
			t.Errorf("%q matches %+v: %v, want %v", text, ev, got, want)
		}
	})
}

// naive matches a valid expression in the slow way.
func naive(expr string, ev *Event) bool {
	for _, token := range strings.Fields(expr) {
		name, pattern, _ := strings.Cut(token, "=")
		values := map[string][]string{
			"platform": {ev.Platform},
			"room":     {ev.Room},
			"chat_jid": {ev.ChatJID},
			"sender":   {ev.Sender},
			"verb":     {ev.Verb},
		}[name]
		if name == "verb" && ev.Verb == "" {
			values = []string{"message"}
		}
		if name == "sender" && ev.SenderName != "" {
			values = append(values, ev.SenderName)
		}
		found := false
		for _, value := range values {
			if ok, err := path.Match(pattern, value); ok && err == nil {
				found = true
			}
		}
		if !found {
			return false
		}
	}
	return true
}
