package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
)

// quick is for agents that answer at once or never.
var quick = Timeouts{Answer: 2 * time.Minute, End: time.Minute, Busy: 20 * time.Second}

// resultsOf returns the result of each case for an agent, and all output.
func resultsOf(t *testing.T, a Agent, p Timeouts) (results map[string]string, text string, err error) {
	t.Helper()
	var out bytes.Buffer
	err = a.Conform(t.Context(), p, &out)
	results = map[string]string{}
	for _, c := range cases() {
		for line := range strings.Lines(out.String()) {
			rest, is := strings.CutPrefix(strings.TrimSpace(line[min(11, len(line)):]), c.name)
			if is && (rest == "" || rest[0] == ':') {
				results[c.name] = strings.TrimSpace(line[:11]) + rest
			}
		}
	}
	return results, out.String(), err
}

func TestConform(t *testing.T) {
	t.Parallel()
	results, text, err := resultsOf(t, fakeAgent("good"), quick)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, c := range cases() {
		switch c.name {
		case "a turn folded into the one under way", "several frames", "many frames", "events while it works", "a question to the user", "a choice of models", "silence", "an error", "an error that keeps the session", "interrupt, then another turn", "interrupt, then the end":
			if !strings.HasPrefix(results[c.name], "not shown: ") {
				t.Errorf("%s: %q", c.name, results[c.name])
			}
		default:
			if results[c.name] != "ok" {
				t.Errorf("%s: %q", c.name, results[c.name])
			}
		}
	}
	if !strings.HasSuffix(text, fmt.Sprintf("%d passed, 0 failed, 11 not shown\n", len(cases())-11)) {
		t.Errorf("it ends:\n%s", text)
	}
}

// Each behaviour fails one case, with a part of the reason and of the fix.
func TestConform_NamesBreaches(t *testing.T) {
	t.Parallel()
	shortExit := Timeouts{Answer: 20 * time.Second, End: 300 * time.Millisecond}
	shortAnswer := Timeouts{Answer: 3 * time.Second, End: 10 * time.Second}
	for _, tt := range []struct {
		how      string
		timeouts Timeouts
		name     string
		result   string
		do       string
	}{
		{"ignores input", shortAnswer, "a first answer", "FAILED: turn 1 is not answered within 3s", "flush it"},
		{"no frames", shortAnswer, "a first answer", "FAILED: turn 1 is not answered", agentproto.FrameStart},
		{"never final", shortAnswer, "a first answer", "FAILED: turn 1: no further frame within", "final:false"},
		{"names another turn", quick, "a first answer", `FAILED: a frame names turn "turn-1"`, "send back the turnId"},
		{"malformed event", quick, "a first answer", "FAILED: a malformed event: unknown status", "made with a JSON library"},
		{"event of another turn", quick, "a first answer", `FAILED: an event names turn "turn-1"`, "send back the turnId"},
		{"indents delimiters", quick, "a first answer", "FAILED: a malformed delimiter", "alone on its line"},
		{"no delimiters", quick, "a first answer", "FAILED: a frame without delimiters", "on a line before it"},
		{"invalid JSON", quick, "a first answer", "FAILED: a malformed frame: invalid character", "JSON library"},
		{"too large", quick, "a first answer", "FAILED: a malformed frame: larger than", "under 1 MiB"},
		{"reports errors", quick, "a first answer", "FAILED: turn 1 failed: no key", "fix this first"},
		{"exits with an error", quick, "a first answer", "FAILED: it exited with an error after its last answer: exit code 3: as asked", "exit with 0"},
		{"does not exit", shortExit, "a first answer", "FAILED: it did not exit at the end of its input", "leave nothing running"},
		{"ignores SIGTERM", shortExit, "a first answer", "FAILED: it did not exit at the end of its input and was killed (ended by signal 9", "leave nothing running"},
		{"answers after the end", quick, "a first answer", "FAILED: a frame after the end of input", "exit after the last answer"},
		{"names no turn", quick, "the frame names its turn", "not shown: without turnId", ""},
		{"names no turn", quick, "a session is taken up again", "not shown: there is no newSessionId", ""},
		{"exits at a session", quick, "a session is taken up again", "FAILED: it exited without a frame: exit code 3", "with a frame"},
		{"exits at a session", quick, "a session that is gone", "FAILED: it exited without a frame", "with a frame"},
		{"reports a session that is gone", quick, "a session that is gone", "ok", ""},
		{"reports a session that is gone without a kind", quick, "a session that is gone", "not shown: it reports an error without a kind", ""},
		{"reports a session that is gone as transient", quick, "a session that is gone", "FAILED: an error of kind transient", "kind session"},
		{"offers models", quick, "a choice of models", "ok", ""},
		{"ignores the model", quick, "a choice of models", `FAILED: the start line has the model "big", and the event models does not name it`, "name it in current"},
		{"refuses the model", quick, "a choice of models", `not shown: with the model "big" it reports an error: not for you`, ""},
		{"exits at turn 2", quick, "a second turn", "FAILED: it exited with turn 2 unanswered: exit code 3", "only when all turns are answered"},
		{"exits after an answer", quick, "a turn piped in while it works", "not shown: it exits after an answer", ""},
		{"exits at unknown line", quick, "a line it does not know", "not shown: it exits at one (exit code 3)", ""},
	} {
		t.Run(tt.how+", "+tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			printer := newPrinter(&out, nil)
			for _, c := range cases() {
				if c.name == tt.name {
					_ = fakeAgent(tt.how).check(t.Context(), c, tt.timeouts, printer, false)
				}
			}
			word, why, _ := strings.Cut(tt.result, ": ")
			want := fmt.Sprintf("%-11s%s", word, tt.name)
			if why != "" {
				want += ": " + why
			}
			if !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), tt.do) {
				t.Errorf("got\n%swant %s, and %q", out.String(), want, tt.do)
			}
		})
	}
}

func TestConform_NoFirstAnswer_Stops(t *testing.T) {
	t.Parallel()
	_, text, err := resultsOf(t, fakeAgent("reports errors"), quick)
	if !errors.Is(err, errFailed) || !strings.HasSuffix(text, fmt.Sprintf("\n0 passed, 1 failed, %d not shown\n", len(cases())-1)) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestConform_ContextEnds_Ends(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	err := fakeAgent("ignores input").Conform(ctx, Timeouts{Answer: time.Hour, End: time.Hour}, &out)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v\n%s", err, out.String())
	}
}
