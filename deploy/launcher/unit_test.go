package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAfterAnEnd(t *testing.T) {
	const short, long = time.Second, settled
	for name, tc := range map[string]struct {
		codes    []int
		lived    time.Duration
		decisive bool
		want     step
	}{
		"a failure":                           {[]int{1}, short, true, again},
		"an end without need":                 {[]int{0}, short, true, again},
		"a held lock":                         {[]int{75}, short, true, again},
		"a signal":                            {[]int{-1}, short, true, again},
		"refused at the start":                {[]int{78}, short, true, giveUp},
		"refused later":                       {[]int{78}, long, false, leave},
		"four times":                          {[]int{1, 0, 75, -1}, short, true, again},
		"five times":                          {[]int{1, 0, 75, -1, 1}, short, true, giveUp},
		"five times, a long time between":     {[]int{1, 1, 1, 1, 1}, long, true, again},
		"any number of times after the start": {slices.Repeat([]int{1}, 50), short, false, again},
	} {
		past, last := newHistory(), again
		for _, code := range tc.codes {
			last, _ = past.after(code, tc.lived, tc.decisive)
		}
		if last != tc.want {
			t.Errorf("%s: %v, want %v", name, last, tc.want)
		}
	}
}

func TestPauses(t *testing.T) {
	past := newHistory()
	want := firstPause
	for range 12 {
		_, pause := past.after(1, time.Second, false)
		if pause < want*8/10 || pause > want*12/10 {
			t.Errorf("end %d: pause %s, want about %s", past.ends, pause, want)
		}
		want = min(2*want, longestPause)
	}
	if _, pause := past.after(1, settled, false); pause > firstPause*12/10 {
		t.Errorf("after a long life: pause %s", pause)
	}
}

func TestPassedOn(t *testing.T) {
	for code, want := range map[int]int{75: 75, 78: 78, 0: 1, 1: 1, 2: 1, -1: 1, 143: 1} {
		if got := passedOn(code); got != want {
			t.Errorf("%d becomes %d, want %d", code, got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	all := services(Config{RoutdAddr: "h:1", GatedAddr: "h:2", DashdAddr: "h:3"})
	set := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	for name, tc := range map[string]struct {
		programs string
		set      func(string) bool
		start    []string
		left     string // what one of the lines says
		fails    bool
	}{
		"nothing set": {"routd gated dashd teled discd slakd", set(), []string{"routd", "gated", "dashd"},
			"teled: not started, TELEGRAM_BOT_TOKEN is not set", false},
		"a token": {"routd gated dashd teled discd slakd", set("DISCORD_BOT_TOKEN"), []string{"routd", "gated", "dashd", "discd"},
			"slakd: not started, SLACK_BOT_TOKEN is not set", false},
		"a token without a program": {"routd gated dashd", set("SLACK_BOT_TOKEN"), []string{"routd", "gated", "dashd"},
			"slakd: not started, SLACK_BOT_TOKEN is set but there is no program at ", false},
		"onbod":       {"routd gated dashd onbod", set(), []string{"routd", "gated", "onbod", "dashd"}, "", false},
		"no dashd":    {"routd gated", set(), nil, "", true},
		"no programs": {"", set(), nil, "", true},
	} {
		bin := t.TempDir()
		for program := range strings.FieldsSeq(tc.programs) {
			if err := os.WriteFile(filepath.Join(bin, program), nil, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		start, left, err := choose(all, bin, tc.set)
		var names []string
		for _, s := range start {
			names = append(names, s.name)
		}
		if diff := cmp.Diff(tc.start, names); diff != "" || (err != nil) != tc.fails {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
		if text := strings.Join(left, "\n"); !strings.Contains(text, tc.left) || strings.Contains(text, "onbod") {
			t.Errorf("%s: it says\n%s", name, text)
		}
	}
}

func TestIsSet(t *testing.T) {
	for _, name := range []string{"LAUNCHER_TEST_TOKEN", "LAUNCHER_TEST_TOKEN_FILE"} {
		t.Setenv(name, "")
		if isSet("LAUNCHER_TEST_TOKEN") {
			t.Error("an empty variable counts")
		}
		t.Setenv(name, "x")
		if !isSet("LAUNCHER_TEST_TOKEN") {
			t.Errorf("%s does not count", name)
		}
		t.Setenv(name, "")
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, tc := range map[string]struct {
		writes []string
		want   string
		words  string
	}{
		"nothing":         {nil, "", ""},
		"a line":          {[]string{"a\n"}, "gated    | a\n", "a"},
		"lines at once":   {[]string{"a\n\nb\n"}, "gated    | a\ngated    | \ngated    | b\n", "b"},
		"a line in parts": {[]string{"a", "b", "c\nd"}, "gated    | abc\ngated    | d\n", "d"},
		"blank at last":   {[]string{"a\n", "\n", " \n"}, "gated    | a\ngated    | \ngated    |  \n", "a"},
		"bytes":           {[]string{"\xff\x00%d\n"}, "gated    | \xff\x00%d\n", "\xff\x00%d"},
		"without an end":  {[]string{long, "y\n"}, "gated    | " + long + "\ngated    | y\n", "y"},
		"long words":      {[]string{long[:5000] + "\n"}, "gated    | " + long[:5000] + "\n", long[:maxWords]},
	} {
		var out bytes.Buffer
		s := &source{console: &console{w: &out}, name: "gated"}
		for _, text := range tc.writes {
			if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%s: Write: %d, %v", name, n, err)
			}
		}
		s.flush()
		if out.String() != tc.want || s.words != tc.words {
			t.Errorf("%s: printed %.100q, last %.100q", name, out.String(), s.words)
		}
	}
}

// writes keeps each Write apart.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestLinesOfSeveralStayWhole(t *testing.T) {
	var out writes
	c := &console{w: &out}
	var group sync.WaitGroup
	for _, name := range []string{"gated", "routd", "dashd"} {
		group.Go(func() {
			s := &source{console: c, name: name}
			for range 200 {
				_, _ = s.Write([]byte("one "))
				_, _ = s.Write([]byte("line\n"))
			}
		})
	}
	group.Wait()
	for _, line := range out {
		if _, text, _ := strings.Cut(line, " | "); text != "one line\n" {
			t.Fatalf("a write of %q", line)
		}
	}
	if len(out) != 600 {
		t.Errorf("%d lines", len(out))
	}
}
