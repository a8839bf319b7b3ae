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
		{"sender=telegram:7*", true, false},
		{"sender=Ann?Lee", false, false},
		{"sender=*Lee", false, false},
		{"sender=*nn*", false, true},
		{"sender=", false, false},
		{"sender_name=Ann?Lee", true, false},
		{"sender_name=*Lee", true, false},
		{"sender_name=*nn*", true, false},
		{"sender_name=*77", false, false},
		{"sender_name=", false, true},
		{"sender=telegram:77 sender_name=Ann*", true, false},
		{"sender=telegram:78 sender_name=Ann*", false, false},
		{"verb=message", true, false},
		{"verb=", false, false},
		{"verb=m*", true, true},
		{"verb=[^m]*", false, false},
		{"platform=web verb=mention", false, true},
		{"platform=web verb=reply", false, false},
		{"  platform=telegram\n verb=message  ", true, false},
		{"room=-1001234 sender_name=*Lee chat_jid=telegram:* platform=t* verb=message", true, false},
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

func TestExpr_Matches_Accounts(t *testing.T) {
	first := EventOf("telegram:-5", "telegram:77", "", "")
	work := EventOf("telegram+work:-5", "telegram+work:77", "", "")
	for text, want := range map[string]struct{ first, work bool }{
		"platform=telegram":              {true, true},
		"platform=telegram account=work": {false, true},
		"platform=telegram account=":     {true, false},
		"account=work":                   {false, true},
		"account=":                       {true, false},
		"account=*":                      {true, true},
		"account=?*":                     {false, true},
		"account=w*":                     {false, true},
		"account=home":                   {false, false},
		"room=-5":                        {true, true},
		"chat_jid=telegram:-5":           {true, false},
		"chat_jid=telegram+work:-5":      {false, true},
		"chat_jid=telegram:*":            {true, false},
		"chat_jid=telegram*:-5":          {true, true},
		"sender=telegram:77":             {true, false}, // ids of other workspaces are those of other users
		"sender=telegram+work:77":        {false, true},
		"sender=telegram:*":              {true, false},
	} {
		expr, err := ParseMatch(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := expr.Matches(&first); got != want.first {
			t.Errorf("%q matches the first account: %t", text, got)
		}
		if got := expr.Matches(&work); got != want.work {
			t.Errorf("%q matches the account work: %t", text, got)
		}
	}
}

// Pairs about senders and verbs do not matter to whether a chat can be reached.
func TestExpr_Reaches_IgnoresSenderAndVerb(t *testing.T) {
	group := EventOf("telegram:-1001234", "", "", "")
	for expr, want := range map[string]bool{
		"":                                 true,
		"platform=telegram":                true,
		"platform=slack":                   false,
		"room=-100*":                       true,
		"room=-200*":                       false,
		"chat_jid=telegram:-1001234":       true,
		"chat_jid=telegram:-1":             false,
		"verb=mention":                     true,
		"verb=":                            true,
		"sender=telegram:77":               true,
		"sender=":                          true,
		"sender=telegram:7 room=-1001234":  true,
		"sender_name=Ann room=-1001234":    true,
		"sender_name=Ann verb=join room=7": false,
		"platform=telegram room=7":         false,
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

// A display name is its user's own text: one that is another user's id gives nothing.
func TestExpr_Matches_NameOfAnId_IsNotTheSender(t *testing.T) {
	stranger := EventOf("telegram:998", "telegram:998", "telegram:42", "")
	for _, text := range []string{"sender=telegram:42", "sender=*:42", "sender=telegram:4*", "sender=telegram[:]42", "platform=telegram sender=*42"} {
		expr, err := ParseMatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if expr.Matches(&stranger) {
			t.Errorf("%q matches a stranger who is called telegram:42", text)
		}
		ix, _ := Compile([]Row{{ID: 1, Match: text, Target: "acme"}})
		if got := ix.First(&stranger); got != nil {
			t.Errorf("%q leads the stranger to %s", text, got.Target)
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
		{"sender_name=Ann Lee", `"Lee" is not key=glob`},
		{"platform=a platform=a", "platform is given twice"},
		{"platform=telegram+work", "write platform=telegram account=work"},
		{"platform=telegram+*", "write platform=telegram account=*"},
		{"sender=a:1 verb=b sender=c:1", "sender is given twice"},
		{"sender=Ann", `"Ann" is not an id, which has a platform as in telegram:42: use sender_name for a display name`},
		{"sender=77", `"77" is not an id`},
		{`sender=\*`, `"\\*" is not an id`},
		{"sender_name=telegram:77", `"telegram:77" looks like an id`},
		{"sender_name=*:77", "looks like an id"},
		{"sender_name=telegram:*", "looks like an id"},
		{`sender_name=telegram\:77`, "looks like an id"},
		{"sender_name=telegram[:]77", "looks like an id"},
		{"Sender_Name=Ann", `unknown key "Sender_Name"`},
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
		value := map[string]string{
			"platform":    ev.Platform,
			"account":     ev.Account,
			"room":        ev.Room,
			"chat_jid":    ev.ChatJID,
			"sender":      ev.Sender,
			"sender_name": ev.SenderName,
			"verb":        ev.Verb,
		}[name]
		if name == "verb" && ev.Verb == "" {
			value = "message"
		}
		if ok, err := path.Match(pattern, value); !ok || err != nil {
			return false
		}
	}
	return true
}

func TestChatOf(t *testing.T) {
	for expr, want := range map[string]string{
		"chat_jid=telegram:42": "telegram:42", "verb=reply chat_jid=telegram:42 sender=telegram:*": "telegram:42", `chat_jid=telegram:\*`: "telegram:*",
		"platform=telegram room=42": "", "platform=telegram room=42 account=": "telegram:42", "account=work platform=telegram room=42": "telegram+work:42",
		"platform=telegram room=42 account=*": "", "platform=telegram": "", "room=42": "", "chat_jid=telegram:*": "", "chat_jid=": "",
		"platform=tele* room=42": "", "nonsense": "", "": "",
	} {
		jid, all := ChatOf(expr)
		if jid != want || all != (expr == "") {
			t.Errorf("ChatOf(%q) = %q, %v; want %q", expr, jid, all, want)
		}
	}
}
