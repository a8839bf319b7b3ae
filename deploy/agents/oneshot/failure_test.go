package main

import (
	"os/exec"
	"strings"
	"testing"

	"arizuko/pkg/agentproto"
)

func TestExplain_ProgramOfScriptMissing_IsPermanent(t *testing.T) {
	c := newCLI("sh", nil, "", nil)
	err := exec.Command("sh", "-c", "nosuchprogram").Run()
	if f := c.explain(err, "", "sh: 1: nosuchprogram: not found"); f.Kind != agentproto.KindPermanent {
		t.Errorf("%+v", f)
	}
}

func TestExplain_GeminiBehindAGateway_SaysWhatToDo(t *testing.T) {
	err := exec.Command("false").Run()
	for program, want := range map[string]bool{"gemini": true, "llm": false} {
		f := newCLI(program, nil, "", nil).explain(err, "", "Invalid auth method selected.\n")
		if f.Kind != agentproto.KindPermanent || strings.Contains(f.Text, "selectedType") != want {
			t.Errorf("%s: %+v", program, f)
		}
	}
}
