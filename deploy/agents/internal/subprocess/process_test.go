package subprocess

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// startShell starts a script.
func startShell(t *testing.T, script string) (p *Process[string], log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	p, err := Start(t.Context(), Program{
		Args: []string{"/bin/sh", "-c", script}, Stderr: &LastLine{Out: log, Redact: strings.ToUpper}, ExitGrace: 100 * time.Millisecond,
	}, func(line []byte) (string, bool) { return string(line), string(line) != "noise" })
	if err != nil {
		t.Fatal(err)
	}
	return p, log
}

func TestProcess_Lines_AreReadUntilItsEnd(t *testing.T) {
	p, log := startShell(t, `read line; echo "got $line"; echo; echo noise; echo last; echo why >&2; exit 3`)
	if err := p.Send(map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range p.Lines {
		got = append(got, line)
	}
	p.Close()
	if want := []string{`got {"a":1}`, "last"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	if p.Ending() != "exit status 3: WHY" || log.String() != "WHY\n" {
		t.Errorf("it ended with %q, log %q", p.Ending(), log)
	}
}

// A program that stays after the end of its input is terminated, and then killed.
func TestProcess_Close_EndsWhatStays(t *testing.T) {
	for _, script := range []string{"sleep 600", "trap '' TERM; sleep 600; sleep 600"} {
		p, _ := startShell(t, script)
		began := time.Now()
		p.Close()
		if took := time.Since(began); took > 30*time.Second || p.Exit() == nil || !p.Finished() {
			t.Errorf("%s: it took %s and ended with %v", script, took, p.Exit())
		}
		if err := p.Send("more"); err != nil {
			t.Error(err)
		}
	}
}

// A program that has closed a pipe, and stays, is terminated: it would never answer.
func TestProcess_ClosedPipe_EndsWhatStays(t *testing.T) {
	for script, want := range map[string]string{
		"echo last; exec >&-; exec sleep 600":                     "it closed its stdout and went on running: signal: terminated",
		"exec <&-; echo last; exec sleep 600":                     "it closed its stdin and went on running: signal: terminated",
		"trap '' TERM; echo last; exec >&-; sleep 600; sleep 600": "it closed its stdout and went on running: signal: killed",
		"echo last; exec >&-; echo why >&2; exit 3":               "exit status 3: WHY",
		"exec <&-; echo last; exit 4":                             "exit status 4",
	} {
		t.Run(script, func(t *testing.T) { // one after another: Close kills all children
			p, _ := startShell(t, script)
			var got []string
			for line := range p.Lines { // the channel is closed at its end
				got = append(got, line)
				_ = p.Send("into its stdin")
			}
			p.Close()
			if !slices.Equal(got, []string{"last"}) || p.Ending() != want {
				t.Errorf("lines %q, it ended with %q, want %q", got, p.Ending(), want)
			}
		})
	}
}

// A program that reads nothing does not keep its caller from ending it.
func TestProcess_UnreadInput_EndsTheProgram(t *testing.T) {
	p, _ := startShell(t, "exec sleep 600")
	for range 2000 {
		if err := p.Send(strings.Repeat("x", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	if want := "it did not read its stdin: signal: terminated"; p.Ending() != want {
		t.Errorf("it ended with %q, want %q", p.Ending(), want)
	}
}

func TestStart_MissingProgram_Fails(t *testing.T) {
	if _, err := Start(t.Context(), Program{Args: []string{"/nowhere/program"}, Stderr: &LastLine{}}, func([]byte) (int, bool) { return 0, true }); err == nil {
		t.Error("it started")
	}
}
