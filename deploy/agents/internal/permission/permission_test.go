package permission

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

// look is a request as users see it, written by gated.
func look(t interface{ Fatal(...any) }, tool, input string) (hash, shown string) {
	r, err := New("May I use "+Quoted(tool)+"?", Field{Name: "tool", Words: tool}, Field{Name: "input", Value: json.RawMessage(input)})
	if err != nil {
		t.Fatal(err)
	}
	a := r.Ask(1, func(s string) string { return s })
	return a.PayloadHash, msg.ExactLine(a.Question) + "\n" + msg.Exact(a.Detail)
}

// pieces are texts that could pass for others, or for the page around them.
var pieces = []string{"a", "b", "ls", "true", "null", "5", "5.0", " ", "  ", strings.Repeat(" ", 40), "\t", "\n", "\n\n\n\n\n", "\r", "\"", "\\", "\\u0061",
	`\u200b`, "\u200b", "\u202e", "\u2066", "\x00", "\x1b[8m", "\u00a0", "\u3000", "\ufe0f", "\u0435", "e\u0301", "\u00e9", "\u037e", ";", "\u3164", "\U000e0041", "[40 blanks]",
	"[5 line breaks]", "* 5 empty lines", "| ", "|", "- ", "\u21a9", "\u21e5", "{}", "[]", `{"a":1}`, "tool: ", "input:\n", "  ", "```", "`", "…", strings.Repeat("x", 99)}

// Two requests that differ never look the same, and have the same hash only if they look the same.
func TestNew_DifferentRequests_LookDifferent(t *testing.T) {
	t.Parallel()
	text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 3), func(p []string) string { return strings.Join(p, "") })
	value := rapid.Custom(func(t *rapid.T) any { return text.Draw(t, "text") })
	for range 2 {
		inner := value
		value = rapid.OneOf(inner, rapid.Map(rapid.SliceOfN(inner, 0, 2), func(v []any) any { return append([]any{}, v...) }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 2), func(v map[string]any) any { return v }),
			rapid.SampledFrom([]any{nil, true, json.Number("5"), json.Number("5.0")}))
	}
	seen := map[string][2]string{}
	rapid.Check(t, func(rt *rapid.T) {
		tool, input := "x"+text.Draw(rt, "tool"), marshal(value.Draw(rt, "input"))
		hash, shown := look(rt, tool, input)
		for _, key := range []string{shown, hash} {
			if before, ok := seen[key]; ok && before != [2]string{tool, input} {
				rt.Fatalf("%q and %q look the same:\n%s", before, [2]string{tool, input}, shown)
			}
			seen[key] = [2]string{tool, input}
		}
	})
}

func TestNew_Input_IsShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ input, want string }{
		{` {"timeout":12345678901234567890, "command" : "grep 'a\\|b' *.go" }`, "input:\n  command: grep 'a\\|b' *.go\n  timeout: 12345678901234567890"},
		{`{"command":"ls` + strings.Repeat(" ", 2990) + `; rm -rf /"}`, "input:\n  command:\n    | ls[2,990 blanks]; rm -rf /"},
		{`{"command":"ls` + strings.Repeat(`\n`, 2990) + `rm -rf /"}`, "input:\n  command:\n    | ls\n    * 2989 empty lines\n    | rm -rf /"},
		{`{"command":"a\",\n\"timeout\": 1"}`, "input:\n  command:\n    | a\",\n    | \"timeout\": 1"},
		{`{"ok":["true",true,"",[],{}," a"]}`, "input:\n  ok:\n    - \"true\"\n    - true\n    - \"\"\n    - []\n    - {}\n    - \" a\""},
		{`{"a\n":"\u0000"}`, "input:\n  \"a\\n\": \"\\u005cu0000\""},
		{`{"file":"\u0440asswd"}`, "input:\n  file: \\u0440asswd"},
	} {
		if _, shown := look(t, "Bash", tt.input); shown != "May I use \"Bash\"?\ntool: \"Bash\"\n"+tt.want {
			t.Errorf("%.60s is shown as\n%s", tt.input, shown)
		}
	}
	for _, bad := range []string{"", `{"a":1,"a":2}`, "\"\xff\""} {
		if _, err := New("?", Field{Name: "input", Value: json.RawMessage(bad)}); err == nil {
			t.Errorf("%.20q can be asked", bad)
		}
	}
}

// Indented, this input would have 2 GB.
func TestNew_DeepInput_IsShownWithoutIndentation(t *testing.T) {
	t.Parallel()
	const depth = 5000
	input := strings.Repeat("[", depth) + `"[\"["` + strings.Repeat(",0", 50000) + strings.Repeat("]", depth)
	r, err := New("?", Field{Name: "input", Value: json.RawMessage(input)})
	if err != nil || len(r.shown) > 2*len(input) {
		t.Errorf("%d bytes are shown of %d, %v", len(r.shown), len(input), err)
	}
}
