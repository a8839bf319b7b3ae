package main

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestSaid_Answer_JoinsTextsBeforeToolCalls(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		texts  []text
		result string
		want   string
	}{
		"only a result":            {nil, "Done.", "Done."},
		"one message":              {[]text{{"1", "Done."}}, "Done.", "Done."},
		"before a tool":            {[]text{{"1", "The build is red.\n"}, {"2", "Done."}}, "Done.", "The build is red.\n\nDone."},
		"blocks of one message":    {[]text{{"1", "a"}, {"2", "b"}, {"2", "c"}}, "b\n\nc", "a\n\nb\n\nc"},
		"nothing after the tool":   {[]text{{"1", "a"}}, "", "a"},
		"a result of another form": {[]text{{"1", "a"}}, "b", "a\n\nb"},
		"a tag that is not closed": {[]text{{"1", "a\n<think>hm"}, {"2", "b"}}, "b", "a\n\nb"},
		"a note behind the answer": {[]text{{"1", "a"}, {"2", "<internal>sent</internal>"}}, "<internal>sent</internal>", "a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := said(tt.texts).answer(tt.result); got != tt.want {
				t.Errorf("got %.100q, want %.100q", got, tt.want)
			}
		})
	}
}

func TestSaid_Add_ModelsOwnTextsOnly(t *testing.T) {
	t.Parallel()
	assistant := func(content, more string) line {
		return readLine(fmt.Appendf(nil, `{"type":"assistant","message":{"id":"m","content":%s}%s}`, content, more))
	}
	var s said
	s.add(assistant(`[{"type":"text","text":"a"},{"type":"tool_use","name":"Bash"},{"type":"text","text":" "},{"type":"text","text":"b"}]`, `,"parent_tool_use_id":null`))
	s.add(assistant(`[{"type":"text","text":"of a subagent"}]`, `,"parent_tool_use_id":"toolu_1"`))
	s.add(assistant(`[{"type":"text","text":"API Error: 529"}]`, `,"error":"overloaded"`))
	s.add(assistant(`"of another form"`, ``))
	s.add(line{Type: "assistant"})
	s.add(line{Type: "assistant", Message: json.RawMessage(`7`)})
	if got := s.answer("b"); len(s) != 2 || got != "b" {
		t.Errorf("%q of %+v", got, s)
	}
	if got := s.answer(""); got != "a\n\nb" {
		t.Errorf("without a result %q", got)
	}
}
