package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"arizuko/gated/internal/running/runtime/enter"
	"arizuko/pkg/agentproto"
)

func TestMain(m *testing.M) {
	enter.Intercept(os.Environ())
	if order := os.Getenv(helperEnv); order != "" {
		var s helperProcess
		if err := errors.Join(json.Unmarshal([]byte(order), &s), s.serve()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait. It is far below the sleeps of the scripts, so that a
// test that waits for one fails.
const patience = 2 * time.Minute

// frame is a shell command that prints one frame.
func frame(result string) string {
	return fmt.Sprintf(`printf '%%s\n' '%s' '{"status":"ok","result":"'"%s"'"}' '%s'`,
		agentproto.FrameStart, result, agentproto.FrameEnd)
}

// script joins shell commands.
func script(lines ...string) string { return strings.Join(lines, "\n") }

func host(t testing.TB) Process { return Process{Temp: t.TempDir(), AsRoot: true} }

func run(t testing.TB, command string) *Proc {
	t.Helper()
	return runSpec(t, Spec{RunID: 7, Command: command, Dir: t.TempDir(), Env: Environ(os.Environ(), nil)})
}

func runSpec(t testing.TB, spec Spec) *Proc {
	t.Helper()
	spec.LogPath = filepath.Join(t.TempDir(), "run.log")
	p, err := host(t).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(0)
		for range p.Events() {
		}
	})
	return p
}

func next(t testing.TB, p *Proc) Event {
	t.Helper()
	select {
	case ev := <-p.Events():
		return ev
	case <-time.After(patience):
		t.Fatal("no event")
		return Event{}
	}
}

// finish receives everything up to the end of the run.
func finish(t testing.TB, p *Proc) (results []string, broken []string, exit Exit) {
	t.Helper()
	for {
		switch ev := next(t, p); {
		case ev.Frame != nil:
			results = append(results, ev.Frame.Result)
		case ev.Malformed != nil:
			broken = append(broken, ev.Malformed.Reason)
		default:
			if _, open := <-p.Events(); open {
				t.Error("an event after the exit")
			}
			return results, broken, *ev.Exit
		}
	}
}

func readLog(t testing.TB, p *Proc) string {
	t.Helper()
	b, err := os.ReadFile(p.log.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestExit(t *testing.T) {
	tests := []struct {
		name, command string
		want          Exit
		reason        string
	}{
		{"clean", "exit 0", Exit{}, "exit code 0"},
		{"code", "echo one >&2; echo two >&2; exit 3", Exit{Code: 3, StderrTail: "one\ntwo\n"}, "exit code 3"},
		{"signal", "kill -KILL $$", Exit{Code: -1, Signal: syscall.SIGKILL}, "ended by signal 9 (killed)"},
		{"stderr that is not text", `printf 'a\377' >&2`, Exit{StderrTail: "a\ufffd"}, "exit code 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, exit := finish(t, run(t, tt.command))
			if diff := cmp.Diff(tt.want, exit); diff != "" {
				t.Errorf("exit (-want +got):\n%s", diff)
			}
			if exit.Reason() != tt.reason {
				t.Errorf("reason %q, want %q", exit.Reason(), tt.reason)
			}
		})
	}
}

func TestConversation(t *testing.T) {
	p := run(t, script(
		`while read -r line; do`, frame(`got $line`), `done`, frame("bye"), `exit 4`))
	for _, word := range []string{"one", "two"} {
		if err := p.Send([]byte(word + "\n")); err != nil {
			t.Fatal(err)
		}
		if ev := next(t, p); ev.Frame == nil || ev.Frame.Result != "got "+word {
			t.Fatalf("event %+v", ev)
		}
	}
	if err := p.Send([]byte("three\n")); err != nil {
		t.Fatal(err)
	}
	p.CloseInput()
	results, _, exit := finish(t, p)
	if diff := cmp.Diff([]string{"got three", "bye"}, results); diff != "" || exit.Code != 4 {
		t.Errorf("exit %+v, results (-want +got):\n%s", exit, diff)
	}
	if err := p.Send([]byte("late\n")); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after the exit: %v, want ErrClosed", err)
	}
}

func TestEnvironmentAndFolder(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "secret")
	t.Setenv("API_KEY", "k")
	dir := t.TempDir()
	for name, env := range map[string][]string{
		"picked": Environ(os.Environ(), []string{"API_KEY"}),
		"none":   nil, // which exec.Cmd would take for all of ours
	} {
		t.Run(name, func(t *testing.T) {
			p := runSpec(t, Spec{RunID: 7, Command: "env; pwd -P", Dir: dir, Env: env})
			finish(t, p)
			log := readLog(t, p)
			if strings.Contains(log, "TELEGRAM") || strings.Contains(log, "API_KEY=k") != (env != nil) {
				t.Errorf("environment:\n%s", log)
			}
			if !strings.Contains(log, "out: "+dir+"\n") || !strings.Contains(log, "out: ARIZUKO_RUN=7\n") {
				t.Errorf("folder or marker missing:\n%s", log)
			}
		})
	}
}

func TestEnviron(t *testing.T) {
	base := []string{"PATH=/bin", "HOME=/h", "PATHS=1", "API_KEY=a=b", "SECRET=s", "TZ=", "noise"}
	want := []string{"PATH=/bin", "HOME=/h", "API_KEY=a=b", "TZ="}
	if diff := cmp.Diff(want, Environ(base, []string{"API_KEY", "UNSET", ""})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEvents_MalformedFrames(t *testing.T) {
	p := run(t, script("echo "+agentproto.FrameStart, "echo nonsense", "echo "+agentproto.FrameEnd, frame("good"), "echo "+agentproto.FrameStart))
	results, broken, _ := finish(t, p)
	if len(broken) != 2 || !cmp.Equal(results, []string{"good"}) {
		t.Errorf("results %q, broken %q", results, broken)
	}
}

// An event is received only when it is asked for, and a report at once: one that was written after the event may wait already.
func TestReports_EventSaysHowManyComeBefore(t *testing.T) {
	report := agentproto.EventMark + ` {"type":"text","text":"x"}`
	p := run(t, script("echo '"+report+"'", frame("one"), "echo '"+report+"'", "echo "+agentproto.FrameStart, "echo nonsense", "echo "+agentproto.FrameEnd, "echo '"+report+"'"))
	for want := 1; want <= 3; want++ {
		ev := <-p.Events()
		if ev.Reports != want {
			t.Errorf("%+v comes after %d reports, want %d", ev, ev.Reports, want)
		}
		for len(p.Reports()) < min(want+1, 3) {
			goruntime.Gosched()
		}
	}
}

func TestReports_NoRoomLeft_ComeFromEvents(t *testing.T) {
	event := agentproto.EventMark + ` {"type":"text","text":"'$i'"}`
	p := run(t, script(fmt.Sprintf(`for i in $(seq %d); do echo '%s'; done`, maxReports+2, event), frame("done")))
	for want := maxReports + 1; want <= maxReports+2; want++ {
		if ev := <-p.Events(); ev.Progress == nil || *ev.Progress.Text != strconv.Itoa(want) {
			t.Errorf("event %+v, want report %d", ev, want)
		}
	}
	if ev := <-p.Events(); ev.Frame == nil {
		t.Errorf("event %+v, want the frame", ev)
	}
	for want := 1; want <= maxReports; want++ {
		if e := <-p.Reports(); *e.Text != strconv.Itoa(want) {
			t.Errorf("report %q, want %d", *e.Text, want)
		}
	}
}

// The agent is dead before anything is received: all it said must still come,
// and in order.
func TestOutput_BeforeExit_IsComplete(t *testing.T) {
	const frames = 300
	for range 5 {
		p := run(t, script(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1))`, frames), frame("$i"), `done; echo last words >&2`))
		awaitExit(p.PID())
		results, broken, exit := finish(t, p)
		if len(results) != frames || len(broken) > 0 || exit.StderrTail != "last words\n" {
			t.Fatalf("%d frames, broken %q, exit %+v", len(results), broken, exit)
		}
		for i, r := range results {
			if r != strconv.Itoa(i+1) {
				t.Fatalf("frame %d is %q", i+1, r)
			}
		}
	}
}

func TestFloods(t *testing.T) {
	tests := []struct{ name, flood string }{
		{"stdout without newlines", `head -c 30000000 /dev/zero | tr '\0' x; echo`},
		{"stdout in lines", `yes line | head -n 1200000`},
		{"stderr without newlines", `head -c 30000000 /dev/zero | tr '\0' x >&2`},
		{"stderr in lines", `yes line | head -n 1200000 >&2`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := run(t, script(tt.flood, frame("answer")))
			results, _, exit := finish(t, p)
			if !cmp.Equal(results, []string{"answer"}) || len(exit.StderrTail) > maxStderrTail {
				t.Errorf("results %q, tail of %d bytes", results, len(exit.StderrTail))
			}
			log := readLog(t, p)
			if len(log) > maxLog+100 || len(log) < maxLog/2 || strings.Count(log, "log truncated\n") != 1 {
				t.Errorf("log of %d bytes ends %q", len(log), log[len(log)-40:])
			}
		})
	}
}

func TestLog_IsPrivateAndComplete(t *testing.T) {
	p := run(t, script("echo out1", "echo err1 >&2", frame("not for the log"), "echo", "printf end"))
	finish(t, p)
	info, err := os.Stat(p.log.file.Name())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	lines := strings.Split(readLog(t, p), "\n")
	for _, want := range []string{"out: out1", "err: err1", "out: end", "run: exit code 0"} {
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("log lacks %q: %q", want, lines)
		}
	}
	if len(lines) != 5 {
		t.Errorf("log has more than it should: %q", lines)
	}
}

func TestStop(t *testing.T) {
	tests := []struct {
		name, command string
		grace         time.Duration
		want          Exit
	}{
		{"reads to the end", script(frame("up"), "cat", "exit 6"), patience, Exit{Code: 6}},
		{"handles SIGTERM", script("trap 'exit 7' TERM", frame("up"), "while :; do sleep 0.01; done 2>&-"), 3 * time.Second, Exit{Code: 7}},
		{"ignores SIGTERM", script("trap '' TERM", frame("up"), "sleep 1000"), 50 * time.Millisecond, Exit{Code: -1, Signal: syscall.SIGKILL}},
		{"is stopped", script(frame("up"), "kill -STOP $$"), 50 * time.Millisecond, Exit{Code: -1, Signal: syscall.SIGKILL}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, tt.command)
			next(t, p)
			if tt.name == "is stopped" {
				if !within(patience, func() bool { st, _ := readStat(p.PID()); return st.State == "T" }) {
					t.Fatal("it runs on")
				}
			}
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { p.Stop(tt.grace) })
			}
			all.Wait()
			if processOf(p.PID()).started == p.PIDStart() {
				t.Error("Stop returned before the process was reaped")
			}
			p.Stop(tt.grace)
			if _, _, exit := finish(t, p); exit != tt.want {
				t.Errorf("exit %+v, want %+v", exit, tt.want)
			}
		})
	}
}

func TestStop_EventsNotReceived(t *testing.T) {
	p := run(t, script("while :; do", frame("again"), "done"))
	next(t, p) // and no more, so that the pipe fills up
	p.Stop(10 * time.Millisecond)
	if _, _, exit := finish(t, p); exit.Signal == 0 {
		t.Errorf("exit %+v", exit)
	}
}

// A child left behind in the group dies with the leader.
func TestExit_ProcessGroup_IsKilled(t *testing.T) {
	p := run(t, script("sleep 1000 &", frame("$!")))
	results, _, exit := finish(t, p)
	if len(results) != 1 || exit.Code != 0 {
		t.Fatalf("results %q, exit %+v", results, exit)
	}
	child, err := strconv.Atoi(results[0])
	if err != nil {
		t.Fatal(err)
	}
	if !within(patience, func() bool { return !groupAlive(t, p.PID()) }) {
		t.Errorf("process %d is still there", child)
	}
}

// A child in a session of its own keeps all pipes, goes on printing and reads
// nothing; the run ends all the same.
func TestExit_ChildLeftGroup_RunEnds(t *testing.T) {
	dir := t.TempDir()
	child := script("trap '' PIPE", frame("$$"), "while :; do echo noise; done")
	if err := os.WriteFile(filepath.Join(dir, "child"), []byte(child), 0o600); err != nil {
		t.Fatal(err)
	}
	p := runSpec(t, Spec{Command: "exec 3<&0; setsid sh child <&3 & read -r line; echo bye; exit 2", Dir: dir, Env: Environ(os.Environ(), nil)})
	escaped, err := strconv.Atoi(next(t, p).Frame.Result)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(escaped, syscall.SIGKILL) })
	if err := p.Send(append([]byte("go\n"), make([]byte, 1<<20)...)); err != nil {
		t.Fatal(err)
	}
	if _, _, exit := finish(t, p); exit.Code != 2 || exit.Unsent == 0 {
		t.Errorf("exit %+v", exit)
	}
	// With the log full the parting words may be missing from it, no other way.
	if log := readLog(t, p); !strings.Contains(log, "out: bye\n") && !strings.Contains(log, "log truncated\n") {
		t.Error("output before the exit was lost")
	}
}

func TestOutput_AfterExit_IsBounded(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll([]*os.File{r, w})
	if _, err := w.WriteString("0123456789"); err != nil {
		t.Fatal(err)
	}
	out := newOutput(r)
	out.left = 6
	out.finish()
	if got, err := io.ReadAll(out); string(got) != "012345" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestStart_Fails_IsASetupErrorAndLeavesNoFileOpen(t *testing.T) {
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := Spec{RunID: 7, Command: "true", Dir: t.TempDir(), LogPath: filepath.Join(t.TempDir(), "run.log")}
	before := open()
	for name, change := range map[string]func(*Process, *Spec){
		"temporary folder": func(p *Process, _ *Spec) { p.Temp = filepath.Join(file, "tmp") },
		"log":              func(_ *Process, s *Spec) { s.LogPath = filepath.Join(file, "run.log") },
		"group's folder":   func(_ *Process, s *Spec) { s.Dir = filepath.Join(file, "none") },
		"command":          func(_ *Process, s *Spec) { s.Command = "tr\x00ue" },
	} {
		p, spec := host(t), good
		change(&p, &spec)
		if _, err := p.Start(t.Context(), spec); err == nil || !isSetup(err) && name != "command" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := open(); after != before {
		t.Errorf("%d files open, %d before", after, before)
	}
}

// BenchmarkRoundTrip is Send, the agent's answer, and its event.
func BenchmarkRoundTrip(b *testing.B) {
	p := run(b, "exec cat")
	line := []byte(agentproto.FrameStart + "\n" + `{"status":"ok","result":"hi"}` + "\n" + agentproto.FrameEnd + "\n")
	for b.Loop() {
		if err := p.Send(line); err != nil {
			b.Fatal(err)
		}
		next(b, p)
	}
}
