package layers

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

func TestParseSticky(t *testing.T) {
	tests := []struct {
		content string
		want    Sticky
		ok      bool
	}{
		{"@eng", Sticky{'@', "eng"}, true},
		{"@acme/eng/on-call_2", Sticky{'@', "acme/eng/on-call_2"}, true},
		{"#deploy", Sticky{'#', "deploy"}, true},
		{"#Deploy_2-b", Sticky{'#', "Deploy_2-b"}, true},
		{"#_x", Sticky{'#', "_x"}, true},
		{"#1", Sticky{'#', "1"}, true},
		{"@", Sticky{'@', ""}, true},
		{"#", Sticky{'#', ""}, true},
		{" \t\n#deploy\r\n ", Sticky{'#', "deploy"}, true},
		{"\u3000@\u00a0", Sticky{'@', ""}, true},
		{strings.Repeat(" ", 1<<20) + "#a" + strings.Repeat("\n", 1<<20), Sticky{'#', "a"}, true},
		{"#" + strings.Repeat("a", maxWord-1), Sticky{'#', strings.Repeat("a", maxWord-1)}, true},

		{"", Sticky{}, false},
		{" \n", Sticky{}, false},
		{"deploy", Sticky{}, false},
		{"/new", Sticky{}, false},
		{"#deploy now", Sticky{}, false},
		{"# heading", Sticky{}, false},
		{"@ home", Sticky{}, false},
		{"@eng @ops", Sticky{}, false},
		{"#a#b", Sticky{}, false},
		{"#a/b", Sticky{}, false},
		{"#-a", Sticky{}, false},
		{"#a.", Sticky{}, false},
		{"##", Sticky{}, false},
		{"@@", Sticky{}, false},
		{"@#a", Sticky{}, false},
		{"@Eng", Sticky{}, false},
		{"@_eng", Sticky{}, false},
		{"@/eng", Sticky{}, false},
		{"@eng/", Sticky{}, false},
		{"@a/../b", Sticky{}, false},
		{"@a.b", Sticky{}, false},
		{"@1/2/3/4/5/6/7/8/9", Sticky{}, false},
		{"#café", Sticky{}, false},
		{"@аcme", Sticky{}, false}, // a Cyrillic first letter
		{"＃deploy", Sticky{}, false},
		{"#a\x00", Sticky{}, false},
		{"#\xff", Sticky{}, false},
		{"#d12", Sticky{}, false},     // a delegated turn's
		{"#a\u200b", Sticky{}, false}, // a zero-width space is not white space
		{"#" + strings.Repeat("a", maxWord), Sticky{}, false},
		{"@" + strings.Repeat("a", 1<<20), Sticky{}, false},
		{strings.Repeat("#", 1<<20), Sticky{}, false},
	}
	for _, tt := range tests {
		got, ok := ParseSticky(tt.content)
		if got != tt.want || ok != tt.ok {
			t.Errorf("ParseSticky(%.40q) = %.60v, %v; want %.60v, %v", tt.content, got, ok, tt.want, tt.ok)
		}
	}
}

func TestParsePrefix(t *testing.T) {
	long := strings.Repeat("x ", 1<<19)
	tests := []struct {
		content string
		want    Prefix
		ok      bool
	}{
		{"@eng fix it", Prefix{'@', "eng", "fix it"}, true},
		{"@acme/eng fix it", Prefix{'@', "acme/eng", "fix it"}, true},
		{"#deploy ship it", Prefix{'#', "deploy", "ship it"}, true},
		{" \n #deploy\n\n  ship\n  it \n", Prefix{'#', "deploy", "ship\n  it \n"}, true},
		{"#deploy\u3000出して", Prefix{'#', "deploy", "出して"}, true},
		{"#a #b c", Prefix{'#', "a", "#b c"}, true},
		{"#a @b", Prefix{'#', "a", "@b"}, true},
		{"#a \x00", Prefix{'#', "a", "\x00"}, true},
		{"#1 is broken", Prefix{'#', "1", "is broken"}, true},
		{"#a " + long, Prefix{'#', "a", long}, true},

		{"", Prefix{}, false},
		{"plain text", Prefix{}, false},
		{"say #deploy now", Prefix{}, false},
		{"#deploy", Prefix{}, false},
		{"#deploy \n ", Prefix{}, false},
		{"#", Prefix{}, false},
		{"# heading", Prefix{}, false},
		{"## heading", Prefix{}, false},
		{"@ home", Prefix{}, false},
		{"@bob's turn", Prefix{}, false},
		{"#1. first", Prefix{}, false},
		{"#deploy, ship it", Prefix{TopicSigil, "deploy", "ship it"}, true},
		{"@eng: hello", Prefix{GroupSigil, "eng", "hello"}, true},
		{"#deploy,ship it", Prefix{}, false},
		{"@: hello", Prefix{}, false},
		{"@a.b wrote", Prefix{}, false},
		{"@Bob hello", Prefix{}, false},
		{"me@acme.org wrote", Prefix{}, false},
		{"#a/b c", Prefix{}, false},
		{"#-a b", Prefix{}, false},
		{"@../x y", Prefix{}, false},
		{"@a// b", Prefix{}, false},
		{"#ünder way", Prefix{}, false},
		{"#\xff x", Prefix{}, false},
		{"#" + strings.Repeat("a", 1<<20) + " x", Prefix{}, false},
		{"#" + strings.Repeat("é", 1<<19) + " x", Prefix{}, false},
	}
	for _, tt := range tests {
		got, ok := ParsePrefix(tt.content)
		if got != tt.want || ok != tt.ok {
			t.Errorf("ParsePrefix(%.40q) = %.60v, %v; want %.60v, %v", tt.content, got, ok, tt.want, tt.ok)
		}
	}
}

// TestTokens_MatchTheGrammar compares with the grammar written as an expression.
func TestTokens_MatchTheGrammar(t *testing.T) {
	token := regexp.MustCompile(`^\s*(?:(@)([\w-]+(?:/[\w-]+)*)?|(#)(\w[\w-]*)?)([,:]?)(?:\s+(\S(?s:.*))|\s*)$`)
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringMatching(`[ \n]{0,2}[@#]{0,2}[a-zA-Z0-9_/.-]{0,4}[ \t\n,:é]{0,2}[a#@ \n]{0,3}`).Draw(t, "content")
		var sticky Sticky
		var prefix Prefix
		m := token.FindStringSubmatch(content)
		if m != nil && (m[2] == "" || msg.ValidFolder(m[2]) == nil) && (m[4] == "" || msg.ValidTopicName(m[4])) {
			sigil, name, comma, rest := (m[1] + m[3])[0], m[2]+m[4], m[5], m[6]
			switch {
			case rest == "" && comma == "":
				sticky = Sticky{sigil, name}
			case rest != "" && name != "":
				prefix = Prefix{sigil, name, rest}
			}
		}
		if got, ok := ParseSticky(content); got != sticky || ok != (sticky != Sticky{}) {
			t.Fatalf("ParseSticky(%q) = %+v, %v; want %+v", content, got, ok, sticky)
		}
		if got, ok := ParsePrefix(content); got != prefix || ok != (prefix != Prefix{}) {
			t.Fatalf("ParsePrefix(%q) = %+v, %v; want %+v", content, got, ok, prefix)
		}
	})
}

func trimLeft(s string) string { return strings.TrimLeftFunc(s, unicode.IsSpace) }

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{"#a", "@a/b c", "#", "\u3000@a\u2028b", "/new@bot #a b", "!stop", "/\xff", "@\x00 b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		sticky, isSticky := ParseSticky(content)
		prefix, isPrefix := ParsePrefix(content)
		command, isCommand := ParseCommand(content, slack, among([]string{"bot"}))
		switch {
		case isSticky && (isPrefix || isCommand) || isPrefix && isCommand:
			t.Errorf("%q is more than one of %+v, %+v, %+v", content, sticky, prefix, command)
		case isSticky && string(sticky.Sigil)+sticky.Name != strings.TrimSpace(content):
			t.Errorf("ParseSticky(%q) = %+v", content, sticky)
		case isPrefix && (!strings.HasPrefix(trimLeft(content), string(prefix.Sigil)+prefix.Name) || !strings.HasSuffix(content, prefix.Rest)):
			t.Errorf("ParsePrefix(%q) = %+v", content, prefix)
		case isCommand && (!strings.HasSuffix(content, command.Args) || !strings.HasSuffix(command.Args, command.Rest)):
			t.Errorf("ParseCommand(%q) = %+v", content, command)
		}
	})
}
