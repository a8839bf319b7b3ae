package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
)

func TestPrinter_Answer(t *testing.T) {
	for _, tt := range []struct {
		colours bool
		frame   agentproto.Frame
		want    string
	}{
		{false, agentproto.Frame{Status: "ok", Result: "<think>x</think>\na\tb\r\nc\n"}, "  a    b\n  c\n"},
		{false, agentproto.Frame{Status: "ok", Result: "\x1b[2J\x07\u202e"}, "  ?[2J??\n"},
		{false, agentproto.Frame{Status: "ok"}, "  (silence)\n"},
		{false, agentproto.Frame{Status: "ok", Result: "<internal>x"}, "  (silence: the whole result is hidden)\n"},
		{false, agentproto.Frame{Status: "error", Error: "e"}, "  error: e\n"},
		{true, agentproto.Frame{Status: "error", Error: "e\nf"}, "\x1b[31m  error: e\x1b[0m\n\x1b[31m  f\x1b[0m\n"},
		{true, agentproto.Frame{Status: "ok", Result: "plain"}, "  plain\n"},
	} {
		var out bytes.Buffer
		p := &printer{out: &out, colours: tt.colours}
		p.answer(tt.frame)
		if diff := cmp.Diff(tt.want, out.String()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.frame, diff)
		}
	}
}

func TestIsTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !isTerminal(terminal) || isTerminal(file) || isTerminal(&bytes.Buffer{}) {
		t.Error("a terminal is not recognised")
	}
}

func TestMisplaced(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	t.Chdir(here)
	for _, path := range []string{"agent.py", "data", there + "/data"} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Agent{Command: "exec python3 'agent.py' data " + here + "/agent.py none.py", Dir: there}.workspace()
	if err != nil {
		t.Fatal(err)
	}
	defer p.remove()
	if got := strings.Join(p.misplaced(), " "); got != "agent.py" {
		t.Errorf("got %q", got)
	}
}
