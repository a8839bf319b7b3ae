package main

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
)

var (
	ok   = agentproto.Frame{Status: agentproto.StatusOK, Result: "r"}
	more = false
)

func frameOf(turn string) agentproto.Frame { f := ok; f.TurnID = turn; return f }

func TestChecker_Frame(t *testing.T) {
	partial := frameOf("1")
	partial.Final = &more
	nameless := partial
	nameless.TurnID = ""
	times := func(n int, f agentproto.Frame) func(*protocolChecker) {
		return func(l *protocolChecker) {
			for range n {
				l.frame(f)
			}
		}
	}
	long := func(n int) agentproto.Frame {
		f := partial
		f.Result = strings.Repeat("x", n)
		return f
	}
	longLast := long(agentproto.MaxResult)
	longLast.Final = nil
	session := func(n int) agentproto.Frame {
		f := frameOf("1")
		f.NewSessionID = strings.Repeat("s", n)
		return f
	}
	several := func(turns ...string) agentproto.Frame {
		return agentproto.Frame{Status: agentproto.StatusOK, TurnIDs: turns}
	}
	tests := []struct {
		name     string
		do       func(*protocolChecker)
		frame    agentproto.Frame
		want     string
		wantOpen string
		wrong    string
	}{
		{"names its turn", nil, frameOf("2"), "2", "1", ""},
		{"names none", nil, ok, "1", "2", ""},
		{"more follows", nil, partial, "1", "1 2", ""},
		{"of several turns", func(l *protocolChecker) { l.offer("2") }, several("1", "2"), "1 2", "", ""},
		{"of several turns, in any order", func(l *protocolChecker) { l.offer("2") }, several("2", "1"), "1 2", "", ""},
		{"of a list of one", nil, several("2"), "2", "1", ""},
		{"of several turns, one not offered", nil, several("1", "2"), "1 2", "", "turn 2, whose line has no fold"},
		{"of several turns, one unknown", nil, several("1", "9"), "1", "2", `turn "9", which this run was not given`},
		{"of several turns, one answered", func(l *protocolChecker) { l.offer("2"); l.frame(ok) }, several("1", "2"), "2", "", "turn 1, which is answered"},
		{"more follows, of no turn", nil, nameless, "1", "1 2", "names no turn"},
		{"of another run", nil, frameOf("7"), "", "1 2", `turn "7", which this run was not given`},
		{"not as it was", nil, frameOf("01"), "", "1 2", "was not given"},
		{"one more", func(l *protocolChecker) { l.frame(ok); l.frame(ok) }, ok, "2", "", ""},
		{"one more, by name", func(l *protocolChecker) { l.frame(ok) }, frameOf("1"), "1", "2", ""},
		{"too late", func(l *protocolChecker) { l.frame(ok); l.frame(ok); l.closed = true }, ok, "2", "", "after the end of input"},
		{"in time", func(l *protocolChecker) { l.frame(ok); l.closed = true }, ok, "2", "", ""},
		{"of a cancelled turn", func(l *protocolChecker) { l.cancel(); l.closed = true }, frameOf("1"), "1", "", ""},
		{"an error", nil, agentproto.Frame{Status: agentproto.StatusError, Error: "e"}, "1", "2", ""},
		{"an error of a kind", nil, agentproto.Frame{Status: agentproto.StatusError, Error: "e", Kind: agentproto.KindTransient, RetryAfter: 2.5}, "1", "2", ""},
		{"an error of an unknown kind", nil, agentproto.Frame{Status: agentproto.StatusError, Error: "e", Kind: "fatal"}, "1", "2", `kind is "fatal"`},
		{"an answer with a kind", nil, agentproto.Frame{Status: agentproto.StatusOK, Kind: agentproto.KindTransient}, "1", "2", "status ok has kind"},
		{"a delay without its kind", nil, agentproto.Frame{Status: agentproto.StatusError, Error: "e", RetryAfter: 5}, "1", "2", "without kind transient"},
		{"a delay in the past", nil, agentproto.Frame{Status: agentproto.StatusError, Error: "e", Kind: agentproto.KindTransient, RetryAfter: -5}, "1", "2", "retry_after is -5"},
		{"a delay in milliseconds", nil, agentproto.Frame{Status: agentproto.StatusError, Error: "e", Kind: agentproto.KindTransient, RetryAfter: 40000}, "1", "2", "retry_after is 40000"},
		{"the last frame allowed", times(agentproto.MaxFrames-1, partial), frameOf("1"), "1", "2", ""},
		{"as many as allowed before the last", times(agentproto.MaxFrames-2, partial), partial, "1", "1 2", ""},
		{"a frame too many", times(agentproto.MaxFrames-1, partial), partial, "1", "1 2", "turn 1 has more than 99 frames before its last one"},
		{"another frame too many", times(agentproto.MaxFrames, partial), partial, "1", "1 2", ""},
		{"the last one of too many", times(agentproto.MaxFrames+1, partial), frameOf("1"), "1", "2", ""},
		{"further ones of an ended turn", times(agentproto.MaxFrames, frameOf("1")), frameOf("1"), "1", "2", "turn 1 has more than 100 frames;"},
		{"a long result", nil, long(agentproto.MaxResult), "1", "1 2", ""},
		{"a result that is too long", nil, long(agentproto.MaxResult + 1), "1", "1 2", "a result of 131073 bytes; gated cuts it at 131072"},
		{"long results", times(6, long(agentproto.MaxResult)), long(agentproto.MaxResult), "1", "1 2", ""},
		{"results that are too long", times(7, long(agentproto.MaxResult)), partial, "1", "1 2", "turn 1 before its last one have more than 917504 bytes"},
		{"further results", times(8, long(agentproto.MaxResult)), partial, "1", "1 2", ""},
		{"the last one after long results", times(7, long(agentproto.MaxResult)), longLast, "1", "2", ""},
		{"a long session id", nil, session(agentproto.MaxSessionID), "1", "2", ""},
		{"a session id that is too long", nil, session(agentproto.MaxSessionID + 1), "1", "2", "newSessionId has 257 bytes"},
		{"an error without a text", nil, agentproto.Frame{Status: agentproto.StatusError, Error: " "}, "1", "2", "without an error text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l protocolChecker
			l.asked("1")
			l.asked("2")
			if tt.do != nil {
				tt.do(&l)
			}
			turns, wrong := l.frame(tt.frame)
			turn := strings.Join(turns, " ")
			if turn != tt.want || strings.Join(l.open, " ") != tt.wantOpen {
				t.Errorf("for turn %q, open %q; want %q, %q", turn, l.open, tt.want, tt.wantOpen)
			}
			checkBreach(t, wrong, tt.wrong)
		})
	}
	if turns, _ := (&protocolChecker{}).frame(ok); len(turns) != 0 {
		t.Errorf("a frame for no turn counts for %q", turns)
	}
}

// checkBreach fails the test unless there is one breach with the text want, or none if want is empty.
func checkBreach(t *testing.T, wrong breaches, want string) {
	t.Helper()
	switch {
	case want == "" && len(wrong) > 0:
		t.Errorf("breaches %+v, want none", wrong)
	case want == "":
	case len(wrong) != 1 || !strings.Contains(wrong[0].what, want) || wrong[0].fix == "":
		t.Errorf("breaches %+v, want one of %q", wrong, want)
	}
}

func TestChecker_Exit(t *testing.T) {
	given := func(frames ...agentproto.Frame) *protocolChecker {
		l := &protocolChecker{}
		l.asked("1")
		l.asked("2")
		for _, f := range frames {
			l.frame(f)
		}
		return l
	}
	closed := func(l *protocolChecker) *protocolChecker { l.closed = true; return l }
	cancelled := given()
	cancelled.cancel()
	failed := exit{code: 3, problem: "Traceback: b"}
	killed := exit{code: -1, signal: syscall.SIGKILL}
	tests := []struct {
		name    string
		checker *protocolChecker
		exit    exit
		late    bool
		wrong   string
	}{
		{"all answered", given(ok, ok), exit{}, false, ""},
		{"nothing asked", &protocolChecker{}, exit{}, false, ""},
		{"nothing asked, and failed", &protocolChecker{}, failed, false, "with an error after its last answer"},
		{"all answered, and failed", given(ok, ok), failed, false, "after its last answer: exit code 3: Traceback: b"},
		{"dropped, and failed", cancelled, failed, false, ""},
		{"without a frame", given(), exit{}, false, "without a frame: exit code 0"},
		{"without a program", given(), exit{code: 127, problem: "x: not found", missing: true}, false, "it exited without a frame: the agent's program cannot be started: x: not found"},
		{"one answer and gone", given(ok), exit{}, false, ""},
		{"one answer of two at the end", closed(given(ok)), exit{}, false, "turn 2 unanswered"},
		{"one answer and a crash", given(ok), failed, false, "turn 2 unanswered: exit code 3"},
		{"it stayed", given(ok, ok), killed, true, "it did not exit at the end of its input and was killed (ended by signal 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkBreach(t, tt.checker.exit(tt.exit, tt.late), tt.wrong) })
	}
}

func TestPrinted(t *testing.T) {
	for line, want := range map[string]string{
		"out: working on it":                             "",
		`out: {"progress":1}`:                            "",
		`err: {"status":"ok","result":""}`:               "",
		"out:  " + agentproto.FrameStart:                 "a malformed delimiter",
		"out: " + agentproto.FrameStart + `{"status":"`:  "a malformed delimiter",
		"out: " + agentproto.FrameEnd:                    "a malformed delimiter",
		"out: ---arizuko_output_start---":                "a malformed delimiter",
		"err: " + agentproto.FrameStart:                  "a delimiter on stderr",
		`out: {"status":"ok","result":"hi"}`:             "a frame without delimiters",
		`err: ---ARIZUKO_EVENT--- {"type":"text"}`:       "an event on stderr",
		`out: ---ARIZUKO_EVENT--- {"type":"text"}`:       "a malformed event: text is missing",
		`out:  ---arizuko_event--- {}`:                   "a malformed event: the line does not begin with",
		`out: ---ARIZUKO_EVENT--- {"type":"later"}`:      "",
		`out:  { "result":"hi", "status":"ok" } trailer`: "a frame without delimiters",
	} {
		t.Run(line, func(t *testing.T) { checkBreach(t, printed(line), want) })
	}
}

// The fix is chosen by the text of the scanner's errors.
func TestMalformed(t *testing.T) {
	framed := func(body string) string {
		return agentproto.FrameStart + "\n" + body + "\n" + agentproto.FrameEnd + "\n"
	}
	for in, do := range map[string]string{
		framed(strings.Repeat("x", agentproto.MaxFrame+1)): "under 1 MiB",
		agentproto.FrameStart + "\n{":                      "before the program ends",
		agentproto.FrameStart + "\n" + framed("{}"):        "in one piece",
		framed(`{"status":"done"}`):                        `"ok" or "error"`,
		framed(`{"status":"ok","turnId":1}`):               "strings",
		framed(`{"status":"ok","final":"no"}`):             "true or false",
		framed(`{"status":"error","retry_after":"5"}`):     "a number",
		framed("{\"status\":\"ok\",\"result\":\"a\nb\"}"):  "JSON library",
		framed("hello"): "JSON library",
	} {
		_, err := agentproto.NewScanner(strings.NewReader(in), &bytes.Buffer{}).NextFrame()
		bad, _ := err.(*agentproto.Malformed)
		if bad == nil {
			t.Errorf("%.60q: %v", in, err)
			continue
		}
		if b := malformed(bad); !strings.Contains(b.fix, do) || !strings.Contains(b.what, "malformed frame") {
			t.Errorf("%.60q: %+v, want %q", in, b, do)
		}
	}
}

func TestQuoted(t *testing.T) {
	got := quoted([]string{"/a/b.py", "--n=1", "it's", "", "$HOME"})
	if diff := cmp.Diff(`/a/b.py --n=1 'it'\''s' '' '$HOME'`, got); diff != "" {
		t.Error(diff)
	}
}
