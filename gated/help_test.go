package main

import (
	"bytes"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
)

func TestProgram_Help_SaysWhatEachCommandDoes(t *testing.T) {
	var out bytes.Buffer
	if code := program().Run(t.Context(), []string{"--help"}, &out, &out); code != daemon.ExitOK {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	for name := range commands() {
		if summary := summaries()[name]; summary == "" || !strings.Contains(out.String(), summary) {
			t.Errorf("the help does not say what %s does:\n%s", name, &out)
		}
	}
}
