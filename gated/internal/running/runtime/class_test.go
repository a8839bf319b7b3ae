package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/testkit/executable"
)

func TestClassOf(t *testing.T) {
	path := func(errno syscall.Errno) error { return &fs.PathError{Op: "open", Path: "/x", Err: errno} }
	for _, tt := range []struct {
		name string
		err  error
		want Class
	}{
		{"none", nil, ClassAgent},
		{"unknown", errors.New("odd"), ClassAgent},
		{"gated is stopping", context.Canceled, ClassAgent},
		{"disk full", path(syscall.ENOSPC), ClassMachine},
		{"quota", fmt.Errorf("log: %w", path(syscall.EDQUOT)), ClassMachine},
		{"no process", &fs.PathError{Op: "fork/exec", Path: "/bin/sh", Err: syscall.EAGAIN}, ClassMachine},
		{"no memory", syscall.ENOMEM, ClassMachine},
		{"no descriptor", os.NewSyscallError("pipe2", syscall.EMFILE), ClassMachine},
		{"no descriptor of the machine", path(syscall.ENFILE), ClassMachine},
		{"read-only disk", path(syscall.EROFS), ClassMachine},
		{"no such file", path(syscall.ENOENT), ClassSetup},
		{"not allowed", path(syscall.EACCES), ClassSetup},
		{"typed", fmt.Errorf("run: %w", &SetupError{errors.New("odd")}), ClassSetup},
		{"typed, of a system call", &SetupError{path(syscall.ENOSPC)}, ClassSetup},
		{"both", errors.Join(errors.New("odd"), &SetupError{errors.New("s")}, &MachineError{errors.New("m")}), ClassMachine},
	} {
		if got := ClassOf(tt.err); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if got := ClassOf(typed(tt.err)); got != tt.want {
			t.Errorf("%s, typed: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestStartFailure(t *testing.T) {
	const help = "\nRun 'docker run --help' for more information\n"
	for _, tt := range []struct {
		name string
		exit Exit
		want Class
	}{
		{"dash, not found", Exit{Code: 127, StderrTail: "/bin/sh: 1: exec: /x: not found\n"}, ClassSetup},
		{"dash, no permission", Exit{Code: 126, StderrTail: "/bin/sh: 1: exec: /x: Permission denied\n"}, ClassSetup},
		{"bash, not found", Exit{Code: 127, StderrTail: "/bin/sh: line 1: /x: No such file or directory\n"}, ClassSetup},
		{"bash, a folder", Exit{Code: 126, StderrTail: "/bin/sh: line 1: exec: /x: cannot execute: Is a directory\n"}, ClassSetup},
		{"env, no interpreter", Exit{Code: 127, StderrTail: "hello\n/usr/bin/env: 'node': No such file or directory\n"}, ClassSetup},
		{"env in German", Exit{Code: 127, StderrTail: "/usr/bin/env: „node“: Datei oder Verzeichnis nicht gefunden\n"}, ClassSetup},
		{"bash in German", Exit{Code: 127, StderrTail: "/bin/sh: Zeile 1: x: Befehl nicht gefunden.\n"}, ClassSetup},
		{"docker, no shell", Exit{Code: 127, StderrTail: `docker: Error response from daemon: exec: "/bin/sh": stat /bin/sh: no such file or directory` + help}, ClassSetup},
		{"docker, no shell under its init", Exit{Code: 127, StderrTail: "[FATAL tini (7)] exec /bin/sh failed: No such file or directory\n"}, ClassSetup},
		{"bwrap, no namespace", Exit{Code: 1, StderrTail: "bwrap: No permissions to create a new namespace\n"}, ClassSetup},
		{"bwrap, an old one", Exit{Code: 1, StderrTail: "bwrap: Unknown option --size\n"}, ClassSetup},
		{"bwrap, no process", Exit{Code: 1, StderrTail: "bwrap: Can't fork: Resource temporarily unavailable\n"}, ClassMachine},
		{"dash, no process", Exit{Code: 2, StderrTail: "/bin/sh: 1: Cannot fork\n"}, ClassMachine},
		{"docker, its own program is missing", Exit{Code: 126, StderrTail: "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: " +
			"runc create failed: unable to start container process: exec: \"/sbin/docker-init\": stat /sbin/docker-init: permission denied: unknown\n"}, ClassMachine},
		{"dash, too many files", Exit{Code: 126, StderrTail: "/bin/sh: 1: /x: Too many open files\n"}, ClassMachine},
		{"the agent's own exit code", Exit{Code: 127, StderrTail: "bye\n"}, ClassAgent},
		{"the agent's own text", Exit{Code: 1, StderrTail: "notes.txt: not found\n"}, ClassAgent},
		{"nothing said", Exit{Code: 127}, ClassAgent},
		{"a script's syntax error", Exit{Code: 2, StderrTail: "/bin/sh: 1: Syntax error: end of file unexpected\n"}, ClassAgent},
		{"success", Exit{StderrTail: "/bin/sh: 1: Cannot fork\n"}, ClassAgent},
		{"a signal", Exit{Code: -1, Signal: syscall.SIGKILL, StderrTail: "/bin/sh: 1: Cannot fork\n"}, ClassAgent},
	} {
		if got := ClassOf(startFailure(tt.exit)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	old := Exit{Code: 1, StderrTail: "bwrap: Unknown option --size\n"}
	if err := startFailure(old); !strings.HasSuffix(err.Error(), "bwrap: Unknown option --size (bubblewrap 0.7 or newer is needed)") {
		t.Error(err)
	}
}

func TestExit_ProgramMissing_IsASetupError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent")
	script := "#!/nonexistent/python3\n"
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"exec /nonexistent/agent", "nosuchagent --fast", "exec '" + file + "'", "/usr/bin/env nosuchagent"} {
		_, _, exit := finish(t, run(t, command))
		if !isSetup(exit.Err) || !strings.Contains(exit.Reason(), "the agent's program cannot be started: ") {
			t.Errorf("%s: %+v", command, exit)
		}
	}
	if err := os.Chmod(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, exit := finish(t, run(t, "exec '"+file+"'")); !isSetup(exit.Err) {
		t.Errorf("without its interpreter: %+v", exit)
	}
}

func TestExit_NotFoundAfterFrame_IsOfTheAgent(t *testing.T) {
	_, _, exit := finish(t, run(t, script(frame("hi"), "nosuchprogram")))
	if exit.Code != 127 || exit.Err != nil {
		t.Errorf("exit %+v", exit)
	}
}

// limitedEnv makes the test binary start an agent with few descriptors.
const limitedEnv = "RUNTIME_TEST_LIMITED"

func TestStart_NoDescriptors_IsAMachineError(t *testing.T) {
	if os.Getenv(limitedEnv) != "" {
		startWithoutDescriptors(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), limitedEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// startWithoutDescriptors changes a limit of its process.
func startWithoutDescriptors(t *testing.T) {
	p := host(t)
	spec := Spec{RunID: 7, Command: "true", Dir: t.TempDir(), LogPath: filepath.Join(t.TempDir(), "run.log")}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 8, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := p.Start(t.Context(), spec)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if !errors.As(err, new(*MachineError)) || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("error %v", err)
	}
}

// dockerScript is a Docker whose client is a shell script.
func dockerScript(t *testing.T, lines ...string) Docker {
	t.Helper()
	client := filepath.Join(t.TempDir(), "docker")
	executable.Script(t, client, script(lines...))
	return Docker{Client: client, Environ: []string{"PATH=" + os.Getenv("PATH")}, Network: "none"}
}

func TestDocker_Failures_HaveAClass(t *testing.T) {
	const ps = `[ "$1" = ps ] && exit 0`
	fails := func(text string, code int) string { return fmt.Sprintf("{ echo '%s' >&2; exit %d; }", text, code) }
	for _, tt := range []struct {
		name  string
		lines []string
		want  Class
	}{
		{"no engine", []string{fails("docker: Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", 125)}, ClassMachine},
		{"no engine, newer client", []string{fails("docker: failed to connect to the docker API at unix:///x; check if the path is correct and if the daemon is running", 125)}, ClassMachine},
		{"engine is stopping", []string{ps, fails("docker: Error response from daemon: The daemon is shutting down.", 125)}, ClassMachine},
		{"disk full", []string{ps, fails("docker: Error response from daemon: mkdir /var/lib/docker/x: no space left on device.", 125)}, ClassMachine},
		{"engine stopped in a run", []string{`[ "$1" = ps ] && ` + fails("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", 1), "exit 137"}, ClassMachine},
		{"no access", []string{ps, fails("docker: permission denied while trying to connect to the Docker daemon socket at unix:///x", 125)}, ClassSetup},
		{"no image", []string{ps, fails("docker: Error response from daemon: No such image: x:1.", 125)}, ClassSetup},
		{"no network", []string{ps, fails("docker: Error response from daemon: network nosuch not found.", 125)}, ClassSetup},
		{"another refusal", []string{ps, fails("docker: Error response from daemon: odd.", 125)}, ClassAgent},
		{"memory limit", []string{ps, "exit 137"}, ClassAgent},
		{"the agent's own 125", []string{ps, "{ echo sorry >&2; exit 125; }"}, ClassAgent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			spec := Spec{RunID: 7, User: ownedBy(t, dir, 59002), Image: "x:1", Dir: dir, LogPath: filepath.Join(t.TempDir(), "run.log")}
			p, err := dockerScript(t, tt.lines...).Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			_, _, exit := finish(t, p)
			said := strings.TrimSpace(exit.StderrTail)
			if ClassOf(exit.Err) != tt.want || strings.HasPrefix(said, "docker: ") && exit.Reason() != said ||
				said == "sorry" && exit.Err != nil {
				t.Errorf("%s, want %s: %+v", ClassOf(exit.Err), tt.want, exit)
			}
		})
	}
}
