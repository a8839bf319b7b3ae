package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// gatewayMAC is the hardware address of a sandbox's gateway: slirp4netns derives it from
// the gateway's 10.0.2.2, pasta is given it.
const gatewayMAC = "52:55:0a:00:02:02"

// uplinkStopTimeout is how long an uplink may take to end before it is killed.
const uplinkStopTimeout = 2 * time.Second

// uplink is the process that connects a sandbox's network with the outside world:
// slirp4netns or pasta. It runs outside the sandbox and ends when gated closes the pipe
// hold, as the kernel does at gated's end.
type uplink struct {
	name    string
	cmd     *exec.Cmd
	hold    *os.File
	ready   *os.File // slirp4netns writes to it; nil for pasta
	said    tail     // complete when it has ended
	closing atomic.Bool
	ended   chan struct{}
}

// pastaScript runs pasta, which knows no descriptor to wait for, until descriptor 3 is
// closed on the other side.
const pastaScript = `"$@" 3<&- & pid=$!; { read -r _ <&3; kill $pid; } >/dev/null 2>&1 & wait $pid`

// startUplink starts the process for a sandbox's network.
func startUplink(plan networkPlan, ns *namespace) (up *uplink, err error) {
	up = &uplink{name: filepath.Base(plan.tool), ended: make(chan struct{})}
	theirs, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	up.hold = hold
	files := []*os.File{theirs}
	argv := pastaArgs(plan, ns.path(), ns.userns)
	if !plan.isPasta {
		ready, readyWriter, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, hold.Close())
		}
		defer readyWriter.Close()
		up.ready, files = ready, append(files, readyWriter)
		argv = slirpArgs(plan, ns.path(), ns.userns)
	}
	up.cmd = exec.Command(argv[0], argv[1:]...)
	up.cmd.Dir = "/"
	up.cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, plan.marks...)
	up.cmd.ExtraFiles = files
	up.cmd.Stderr = &up.said
	up.cmd.WaitDelay = uplinkStopTimeout
	up.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := up.cmd.Start(); err != nil {
		closeAll([]*os.File{hold, up.ready})
		return nil, fmt.Errorf("start %s: %w", up.name, err)
	}
	go func() {
		_ = up.cmd.Wait() // its output tells more
		close(up.ended)
	}()
	return up, nil
}

// slirpArgs: its network is 10.0.2.0/24. Its name server is off: at its address other
// ports of the machine's one would be open, too. Only root can enable its sandbox in a
// namespace that has one user.
func slirpArgs(plan networkPlan, netns, userns string) []string {
	args := []string{
		plan.tool, "--configure", "--mtu=65520", "--disable-host-loopback", "--disable-dns", "--enable-seccomp",
		"--exit-fd=3", "--ready-fd=4", "--netns-type=path",
	}
	if userns == "" {
		args = append(args, "--enable-sandbox")
	} else {
		args = append(args, "--userns-path="+userns)
	}
	return append(args, netns, "tap0")
}

// pastaArgs: a network with this machine's address, so that the address leads nowhere
// else. No port is forwarded in either direction.
func pastaArgs(plan networkPlan, netns, userns string) []string {
	args := []string{
		shell, "-c", pastaScript, plan.tool, plan.tool, "--foreground", "--quiet", "--config-net", "--no-map-gw",
		"--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none", "--no-netns-quit",
		"--ipv4-only", "--mac-addr", gatewayMAC,
	}
	if plan.forwarded.IsValid() {
		args = append(args, "--dns", pastaResolver().String(), "--dns-forward", plan.forwarded.String())
	}
	if userns == "" {
		// By default it changes to a user that may not open the namespace. It gives up all
		// capabilities that it does not need in any case.
		args = append(args, "--runas", "0", "--netns-only")
	} else {
		args = append(args, "--userns", userns)
	}
	return append(args, "--netns", netns)
}

// await returns when the network is configured. An error is a *SetupError or
// *MachineError if the uplink failed or hangs.
func (up *uplink) await(ctx context.Context, init process) error {
	configured := init.hasDefaultRoute
	if up.ready != nil {
		defer up.ready.Close()
		configured = func() (bool, error) {
			_ = up.ready.SetReadDeadline(time.Now().Add(networkPoll))
			n, _ := up.ready.Read(make([]byte, 1))
			return n > 0, nil
		}
	}
	err := init.await(ctx, func() (bool, error) {
		if ok, err := configured(); ok || err != nil {
			return ok, err
		}
		if up.hasEnded() {
			return false, up.failure("cannot connect the sandbox with the network")
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		up.abandon()
		return up.failure("hangs while it connects the sandbox with the network")
	}
	return err
}

// uplinkSetupText matches errors of slirp4netns and pasta that no retry fixes.
var uplinkSetupText = regexp.MustCompile(`(?i)permission denied|not permitted|no such (file|device)|` +
	`unrecognized option|invalid option|unknown option|usage:`)

// failure is the error of an uplink that has ended, with its last words.
func (up *uplink) failure(what string) error {
	var said []string
	for line := range strings.Lines(up.said.String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "Failed to send ") { // to a syslog that is not there
			said = append(said, line)
		}
	}
	err := fmt.Errorf("%s %s: %.500s", up.name, what, strings.Join(said, "; "))
	if uplinkSetupText.MatchString(err.Error()) {
		return &SetupError{err}
	}
	return &MachineError{err}
}

// watch calls lost if the uplink ends before it is closed.
func (up *uplink) watch(lost func()) {
	if up == nil {
		return
	}
	go func() {
		<-up.ended
		if !up.closing.Load() {
			lost()
		}
	}()
}

// close ends the uplink and returns when it has ended. It returns an error if it had
// ended before.
func (up *uplink) close() error {
	if up == nil {
		return nil
	}
	lost := up.hasEnded()
	up.abandon()
	if lost {
		return fmt.Errorf("%s ended during the run, and with it the agent's network", up.name)
	}
	return nil
}

func (up *uplink) hasEnded() bool {
	select {
	case <-up.ended:
		return true
	default:
		return false
	}
}

// abandon ends the uplink, however it is.
func (up *uplink) abandon() {
	up.closing.Store(true)
	_ = up.hold.Close()
	select {
	case <-up.ended:
	case <-time.After(uplinkStopTimeout):
		_ = syscall.Kill(-up.cmd.Process.Pid, syscall.SIGKILL)
		<-up.ended
	}
}
