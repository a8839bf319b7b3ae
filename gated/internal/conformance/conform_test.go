package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// quick is for agents that answer at once, when they do.
var quick = Timeouts{Answer: 20 * time.Second, End: 10 * time.Second}

// verdictsOf are the verdicts on an agent by case, and all that was printed.
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
		case "several frames", "silence", "an error", "interrupt, then another turn", "interrupt, then the end":
			if !strings.HasPrefix(results[c.name], "not shown: ") {
				t.Errorf("%s: %q", c.name, results[c.name])
			}
		default:
			if results[c.name] != "ok" {
				t.Errorf("%s: %q", c.name, results[c.name])
			}
		}
	}
	if !strings.HasSuffix(text, fmt.Sprintf("%d passed, 0 failed, 5 not shown\n", len(cases())-5)) {
		t.Errorf("it ends:\n%s", text)
	}
}

// What each manner costs: the case, its verdict and a part of why.
func TestConformNamesBreaches(t *testing.T) {
	t.Parallel()
	brief := Timeouts{Answer: 20 * time.Second, End: 300 * time.Millisecond}
	impatient := Timeouts{Answer: 3 * time.Second, End: 10 * time.Second}
	for _, tt := range []struct {
		how      string
		timeouts Timeouts
		name     string
		result   string
		do       string
	}{
		{"deaf", impatient, "a first answer", "FAILED: turn 1 is not answered within 3s", "flush it"},
		{"silent", impatient, "a first answer", "FAILED: turn 1 is not answered", "flush it"},
		{"endless", impatient, "a first answer", "FAILED: turn 1: more was to follow, and nothing came", "final:false"},
		{"mistaken", quick, "a first answer", `FAILED: a frame names turn "turn-1"`, "send back the turnId"},
		{"indenting", quick, "a first answer", "FAILED: a delimiter that is none", "alone on its line"},
		{"bare", quick, "a first answer", "FAILED: a frame without delimiters", "on a line before it"},
		{"broken", quick, "a first answer", "FAILED: a frame that cannot be read: invalid character", "JSON library"},
		{"huge", quick, "a first answer", "FAILED: a frame that cannot be read: larger than", "under 1 MiB"},
		{"failing", quick, "a first answer", "FAILED: turn 1 failed: no key", "mend this first"},
		{"sore", quick, "a first answer", "FAILED: it ended with an error after all was answered: exit code 3: as it was told", "exit with 0"},
		{"staying", brief, "a first answer", "FAILED: it stayed when its input had ended", "leave nothing running"},
		{"stubborn", brief, "a first answer", "FAILED: it stayed when its input had ended, and was made to go (ended by signal 9", "leave nothing running"},
		{"chatty", quick, "a first answer", "FAILED: a frame after the end of input", "exit after the last answer"},
		{"nameless", quick, "the frame names its turn", "not shown: without turnId", ""},
		{"nameless", quick, "a session is taken up again", "not shown: there is no newSessionId", ""},
		{"forgetful", quick, "a session is taken up again", "FAILED: it ended without a frame: exit code 3", "with a frame"},
		{"forgetful", quick, "a session that is gone", "FAILED: it ended without a frame", "with a frame"},
		{"short-lived", quick, "a second turn", "FAILED: it ended with turn 2 unanswered: exit code 3", "when all is answered"},
		{"one-shot", quick, "a turn piped in while it works", "not shown: it ends after an answer", ""},
		{"narrow", quick, "a line it does not know", "not shown: it ends at one (exit code 3)", ""},
	} {
		t.Run(tt.how+", "+tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			printer := newPrinter(&out)
			for _, c := range cases() {
				if c.name == tt.name {
					_ = fakeAgent(tt.how).check(t.Context(), c, tt.timeouts, printer, false)
				}
			}
			word, why, _ := strings.Cut(tt.result, ": ")
			want := fmt.Sprintf("%-11s%s: %s", word, tt.name, why)
			if !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), tt.do) {
				t.Errorf("got\n%swant %s, and %q", out.String(), want, tt.do)
			}
		})
	}
}

func TestConformStopsWithoutAFirstAnswer(t *testing.T) {
	t.Parallel()
	_, text, err := resultsOf(t, fakeAgent("failing"), quick)
	if !errors.Is(err, errFailed) || !strings.HasSuffix(text, fmt.Sprintf("\n0 passed, 1 failed, %d not shown\n", len(cases())-1)) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestConformEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	err := fakeAgent("deaf").Conform(ctx, Timeouts{Answer: time.Hour, End: time.Hour}, &out)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v\n%s", err, out.String())
	}
}
