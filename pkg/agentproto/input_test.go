package agentproto

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The lines are a contract with agents in other languages.
func TestEncode(t *testing.T) {
	start := Start{
		TurnID: "12", Prompt: "<messages>\n&lt;b&gt;</messages>", SessionID: "s", GroupFolder: "acme/eng",
		ChatJID: "telegram:-1", Topic: "#t", ThreadID: "7", EngageTopic: "7", Surface: "telegram-topic", Ceiling: 4000,
	}
	withTools := start
	withTools.MCP = &MCP{URL: "http://h/mcp", Token: "k"}
	common := `{"type":"start","turnId":"12","prompt":"<messages>\n&lt;b&gt;</messages>","sessionId":"s",` +
		`"groupFolder":"acme/eng","chatJid":"telegram:-1","topic":"#t","threadId":"7","engageTopic":"7",` +
		`"surface":"telegram-topic","ceiling":4000`
	tests := []struct {
		name string
		in   Input
		want string
	}{
		{"start", start, common + "}\n"},
		{"start with tools", withTools, common + `,"mcp":{"url":"http://h/mcp","token":"k"}}` + "\n"},
		{"message", Message{TurnID: "13", Prompt: "a\r\nb"}, `{"type":"message","turnId":"13","prompt":"a\r\nb"}` + "\n"},
		{"message to be folded", Message{TurnID: "13", Fold: true}, `{"type":"message","turnId":"13","prompt":"","fold":true}` + "\n"},
		{"interrupt", Interrupt{}, `{"type":"interrupt"}` + "\n"},
		{"bytes that are no text", Message{Prompt: "a\xff\x00"}, `{"type":"message","turnId":"","prompt":"a\ufffd\u0000"}` + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line, err := Encode(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(line)); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadInputReturnsWhatWasEncoded(t *testing.T) {
	for _, in := range []Input{
		Start{TurnID: "1", Prompt: "<a>\n\u2028", Ceiling: 200, MCP: &MCP{URL: "u", Token: "t"}},
		Message{TurnID: "2", Prompt: `"quoted" \n`},
		Interrupt{},
	} {
		line, err := Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(line, []byte("\n")); n != 1 || !bytes.HasSuffix(line, []byte("\n")) {
			t.Errorf("%T is not one line: %q", in, line)
		}
		got, err := ReadInput(line)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestReadInput(t *testing.T) {
	tests := []struct{ line, wantErr string }{
		{`{"type":"message","turnId":"1","prompt":"","later":{"a":1}}`, ""},
		{``, "input line"},
		{`[1]`, "input line"},
		{`{"type":"shutdown"}`, `unknown input type "shutdown"`},
		{`{}`, `unknown input type ""`},
		{`{"type":"message","turnId":12}`, "message line"},
	}
	for _, tt := range tests {
		_, err := ReadInput([]byte(tt.line))
		switch {
		case tt.wantErr == "" && err != nil:
			t.Errorf("%s: %v", tt.line, err)
		case tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)):
			t.Errorf("%s: error %v, want %q", tt.line, err, tt.wantErr)
		}
	}
}
