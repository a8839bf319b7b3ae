package agents

import (
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
)

func TestMaskSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"go test ./pkg/keys -run 'Token|Key'":                      "go test ./pkg/keys -run 'Token|Key'",
		"mkdir -m 700 tokens && ls -la tokens":                     "mkdir -m 700 tokens && ls -la tokens",
		"mysql -p'example-pass' -e 'select 1'":                     "mysql -p [hidden] -e 'select 1'",
		"mysql -pexample-pass -h db":                               "mysql -p [hidden] -h db",
		"curl -u me:example-pass https://example.com/a?b=c#d":      "curl -u [hidden] https://example.com/a",
		"git clone https://me:example-pass@example.com/x.git":      "git clone https://example.com/x.git",
		"curl -H 'Authorization: Bearer example-pass' example.com": "curl -H 'Authorization: Bearer [hidden]' example.com",
		`{"password":"example-pass","user":"me"}`:                  `{"password":[hidden],"user":"me"}`,
		"export DB_PASSWORD=example-pass; run":                     "export DB_PASSWORD=[hidden]; run",
		"tool --api-key example-pass --to x":                       "tool --api-key [hidden] --to x",
		"echo ghp_examplepassexamplepass":                          "echo [hidden]",
	} {
		if got := maskSecrets(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// The input of a tool is seen in the group that wants it, and stored in no other.
func TestProgress_ToolInput_IsShownWhereTheGroupWantsIt(t *testing.T) {
	t.Parallel()
	for wanted, want := range map[bool]string{false: "Look", true: "Look: psql -W ***; export TOKEN=[hidden]"} {
		r := newHarness(t)
		if wanted {
			r.configure("main", `{"tool_input":true}`)
		}
		open := r.gate("main", "gate")
		asked := r.ask(`!event {"type":"tool","id":"1","title":"Look","status":"running","input":"psql -W hunter2\u003b\n export TOKEN=abc"}; hold gate; say done`)
		r.until("the tool is stored", func() bool { p := r.progress(asked); return p != nil && len(p.Tools) == 1 })
		diff(t, "tools", r.progress(asked).Tools, []agentproto.Tool{{ID: "1", Title: want, Status: agentproto.ToolRunning}})
		open()
		r.answered(asked)
	}
	p := &progress{inputs: true}
	long := p.title(&agentproto.Tool{Title: "Write", Input: strings.Repeat("ä", 400)}, func(s string) string { return s })
	if len(long) > agentproto.MaxTitle {
		t.Errorf("the title has %d bytes", len(long))
	}
}
