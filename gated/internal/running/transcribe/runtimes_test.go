package transcribe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/need"
)

const (
	image = "transcriber:1"
	// testUID is the user of the group's agents, whom nothing else on the machine uses.
	testUID = 59100
)

// shellImage makes an image that has nothing but a shell.
func shellImage(t *testing.T, engine *docker.Engine) {
	t.Helper()
	out, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"bin/sh": "/bin/sh"}
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
		files[strings.TrimPrefix(path, "/")] = path
	}
	engine.Import(t, image, files)
}

// TestWorker_Runtimes tries commands in each runtime as it is on this machine, with the user that a group of a root
// gated has.
func TestWorker_Runtimes(t *testing.T) {
	need.Full(t)
	need.Root(t)
	need.Program(t, "bwrap", "bubblewrap")
	engine := new(docker.Engine) // without VERIFY nothing runs on it
	if os.Getenv("VERIFY") != "" {
		engine = docker.Start(t)
		shellImage(t, engine)
	}
	for _, kind := range []groupconfig.Runtime{groupconfig.Process, groupconfig.Bwrap, groupconfig.Docker} {
		t.Run(string(kind), func(t *testing.T) {
			if kind == groupconfig.Docker {
				need.Verify(t)
			}
			for name, c := range inRuntimes() {
				t.Run(name, func(t *testing.T) {
					h := newHarness(t, "")
					h.user = runtime.User{UID: testUID, GID: testUID}
					temp := filepath.Join(h.data, "tmp")
					h.runtimes = map[groupconfig.Runtime]runtime.Runtime{
						groupconfig.Process: runtime.Process{Temp: temp},
						groupconfig.Bwrap:   runtime.Sandbox{Temp: temp, Data: h.data},
						groupconfig.Docker:  runtime.Docker{Client: "docker", Environ: engine.Environ(), Instance: runtime.InstanceOf(h.data), Network: "host"},
					}
					h.settings.Agent.Runtime, h.settings.Agent.Image = kind, image
					h.settings.Transcribe = strings.ReplaceAll(c.command, "FILE", groupconfig.FilePlaceholder)
					h.settings.Limits.Memory = 256 << 20
					if c.timeout != 0 {
						h.settings.Timeouts.Transcribe = groupconfig.Duration(c.timeout)
					}
					h.bounds = bounds{file: 1 << 20, folder: 4 << 20, tasks: 64}
					m := h.voice("a.ogg")
					h.worker()
					got := h.transcript(m)
					if want := c.want[kind]; got.Text != want && c.problem == "" {
						t.Errorf("got %+v, want %q; log:\n%s", got, want, h.logged())
					}
					if got.Error != c.problem {
						t.Errorf("got problem %q, want %q; log:\n%s", got.Error, c.problem, h.logged())
					}
					h.awaitLog(c.log)
					h.await("end of its processes and files", func() bool { return len(processes()) == 0 && h.noFolders() })
				})
			}
		})
	}
}

type inRuntime struct {
	command string // FILE stands for the file
	want    map[groupconfig.Runtime]string
	problem string
	log     string
	timeout time.Duration
}

func all(text string) map[groupconfig.Runtime]string {
	return map[groupconfig.Runtime]string{groupconfig.Process: text, groupconfig.Bwrap: text, groupconfig.Docker: text}
}

// inRuntimes are commands that use nothing but the shell.
func inRuntimes() map[string]inRuntime {
	return map[string]inRuntime{
		"words": {command: `read -r words <FILE; echo "heard $words"`, want: all("heard sound")},
		"network": {
			command: `n=0; while read -r name rest; do case $name in *:*) n=$((n + 1)); last=$name;; esac; done </proc/net/dev; : FILE; [ $n -gt 1 ] && echo some || echo "$last"`,
			want:    map[groupconfig.Runtime]string{groupconfig.Process: networkHere(), groupconfig.Bwrap: "lo:", groupconfig.Docker: "lo:"},
		},
		"memory": {command: `x=FILE; while :; do x=$x$x; done`, problem: problemFailed, log: "transcription failed"},
		"processes": {
			command: `i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); /bin/sh -c 'kill -STOP $$' & done; echo all FILE`, problem: problemFailed, log: "ork",
			timeout: 10 * time.Minute,
		},
		"a file without end": {command: `: FILE; while :; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; done`, problem: problemFailed, log: "transcription failed"},
		// Not without end: files in memory would pass the limit of that before anything looks at their size.
		"too many files":        {command: `i=0; while :; do i=$((i + 1)); [ $i -gt 3000 ] || echo FILE >"f$i"; done`, problem: problemFailed, log: "it has written more than 4 MiB"},
		"never ends":            {command: `: FILE; trap '' TERM INT HUP; (while :; do :; done) & while :; do :; done`, problem: msg.TranscriptLate, log: msg.TranscriptLate, timeout: 2 * time.Second},
		"no such program":       {command: `no-such-whisper FILE`, problem: problemMissing, log: "no-such-whisper"},
		"replaces its output":   {command: `: FILE; echo words; true >other; echo forged >other`, want: all("words")},
		"other's files, a link": {command: `read -r words <../../../media/1-0-x || echo closed FILE`, want: all("closed ./audio.ogg")},
	}
}

// networkHere is the answer of a command with this machine's network.
func networkHere() string {
	devices, _ := os.ReadFile("/proc/net/dev")
	if strings.Count(string(devices), ":") > 1 {
		return "some"
	}
	return "lo:"
}

var ofTestUser = regexp.MustCompile(fmt.Sprintf(`(?m)^Uid:\s+%d\b`, testUID))

// processes are those of the test's user that have not ended.
func processes() (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range all {
		status, err := os.ReadFile(path)
		if err == nil && ofTestUser.Match(status) && !strings.Contains(string(status), "State:\tZ") {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
