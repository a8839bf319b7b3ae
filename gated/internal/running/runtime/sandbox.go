package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"arizuko/gated/internal/running/runtime/enter"
)

const (
	// shmSize is how many bytes a sandbox may keep in shared memory, which is its own.
	shmSize = 256 << 20
	// minBwrap is the first version of bubblewrap that has the option --size.
	minBwrap = "0.7"
)

// Sandbox runs agents as processes confined by bubblewrap: they see the system's
// programs, their group's folder, no other process, and nothing else of the data
// folder.
type Sandbox struct {
	Temp     string   // the folder of the runs' temporary folders
	Data     string   // the data folder, hidden but for the group's own
	Readable []string // further folders and files that agents may read
	Network  Network  // "" is NetworkOwn
	// Forward is an address of this machine, host:port, that agents reach at the same port
	// of 127.0.0.1; "" is none. With NetworkHost they reach it anyway.
	Forward string
	// NetworkTimeout is how long it may take until a run has its network; 0 is 15 s.
	NetworkTimeout time.Duration
	// ResolvConfs are the files that name this machine's name servers; nil: the usual ones.
	ResolvConfs []string
}

// Check runs a shell in a sandbox that looks for the agent's program.
func (s Sandbox) Check(ctx context.Context, spec Spec) error {
	if err := spec.checkUser(); err != nil {
		return err
	}
	if cmp.Or(spec.Network, s.Network) == NetworkAsk { // nothing is sent
		spec.Network = NetworkNone
	}
	where := " in the sandbox, where only the system, this program's folder and AGENT_READABLE are"
	return check(ctx, spec, s.Temp, where, s.start)
}

// Start runs spec.Command by sh -c in a sandbox of its own, whose /tmp is the
// run's temporary folder.
func (s Sandbox) Start(ctx context.Context, spec Spec) (*Proc, error) {
	if err := spec.checkUser(); err != nil {
		return nil, err
	}
	return tempDir{s.Temp, spec.RunID}.use(ctx, spec, s.start)
}

// start is a starter.
func (s Sandbox) start(ctx context.Context, spec Spec, argv []string, temp string, cleanup func()) (*Proc, error) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, setupError("bubblewrap is not installed (%s or newer is needed): %w", minBwrap, err)
	}
	view, err := s.view(spec, temp)
	if err != nil {
		return nil, err
	}
	prep, err := s.prepare(spec, &view)
	if err != nil {
		return nil, err
	}
	stdio := infoFD + len(prep.files) // as of any job that is apart
	p, err := start(ctx, spec, job{
		argv: slices.Concat([]string{bwrap}, prep.args(), view.args(), view.command(argv, stdio)),
		env: append(without(spec.Env, "HOME", "TMPDIR", ownerName), "HOME="+view.shown, "TMPDIR=/tmp",
			s.ownerMarker()),
		files:     prep.files,
		pinned:    true,
		apart:     true, // bubblewrap keeps its own stdin and stdout open, and closes the other files
		prepare:   func() error { return prep.run(ctx) },
		terminate: func() { prep.init.terminate() },
		cleanup: func(exit *Exit) {
			// Only the agent's own exit: bubblewrap ends by a signal when the run is stopped.
			if reached := prep.group.exceeded(); reached != "" && exit.Err == nil && exit.Code > 0 {
				exit.Err = fmt.Errorf("%s (%s)", reached, exit.Reason())
			}
			exit.Err = errors.Join(exit.Err, prep.end())
			cleanup()
		},
	})
	if err != nil {
		return nil, errors.Join(err, prep.end())
	}
	prep.up.watch(p.kill)
	return p, nil
}

// End kills bubblewrap and the programs of its network, if they are alive, and waits for the end of the sandbox:
// bubblewrap takes all its processes along, as gated takes bubblewrap. One exception: if bubblewrap is killed while it
// sets the sandbox up, the process it forked waits for it for ever.
func (s Sandbox) End(_ context.Context, left Orphan) (found bool, err error) {
	found, err = left.end(func(pid int) bool { return hasMarkers(pid, runMarker(left.RunID)) && s.isFormer(pid) })
	if err != nil {
		return found, err
	}
	groups, err := s.groupsOf(func(name string) bool { return name == runName(left.RunID) })
	if err := errors.Join(err, removeGroups(groups)); err != nil {
		return found, err
	}
	return found, tempDir{s.Temp, left.RunID}.remove()
}

// view is the part of the machine that a sandbox shows. All paths are real ones.
type view struct {
	user     User
	system   []string // bubblewrap's arguments for the system's folders
	folders  []string // closed to the user: they show only the entries in readable
	network  []string // bubblewrap's arguments for the network
	accounts []string // bubblewrap's arguments for the tables that name the user
	readable []string
	bundle   string // shown at BundlePath, "" for none
	data     string
	temp     string
	dir      string // the group's folder
	shown    string // where the agent sees it, such as <data>/groups/acme/eng; only the sandbox has that path
}

func (s Sandbox) view(spec Spec, temp string) (v view, err error) {
	v.user, v.bundle, v.system = spec.User, spec.Bundle, systemArgs()
	resolve := func(path string) string {
		real, e := filepath.EvalSymlinks(path)
		err = errors.Join(err, e)
		return real
	}
	v.data, v.temp, v.dir = resolve(s.Data), resolve(temp), resolve(spec.Dir)
	v.shown = v.dir
	if spec.Folder != "" {
		v.shown = filepath.Join(filepath.Dir(v.dir), filepath.FromSlash(spec.Folder))
	}
	for _, path := range s.Readable {
		err = errors.Join(err, v.addReadable(path))
	}
	return v, err
}

// addReadable adds a path that exists. A link is shown as its target, under its
// own name; of a folder that is closed to the user the entries are shown.
func (v *view) addReadable(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || v.user.IsZero() || !info.IsDir() || v.user.MayEnter(info) {
		v.readable = append(v.readable, path)
		return err
	}
	entries, err := os.ReadDir(path)
	v.folders = append(v.folders, path)
	for _, entry := range entries {
		entry := filepath.Join(path, entry.Name())
		if _, err := os.Stat(entry); err == nil {
			v.readable = append(v.readable, entry)
		}
	}
	return err
}

// addAccounts names the user to the agent.
func (v *view) addAccounts(prep *preparation) error {
	if v.user.IsZero() {
		return nil
	}
	files, err := v.user.Accounts(v.shown)
	if err != nil {
		return err
	}
	for _, f := range files {
		fd, err := prep.add(f.Content)
		if err != nil {
			return err
		}
		v.accounts = append(v.accounts, "--perms", "0644", "--ro-bind-data", strconv.Itoa(fd), f.Path)
	}
	return nil
}

// command runs in the sandbox and becomes argv, with stdin and stdout from the descriptors stdio and the next
// one, 0 for its own. With a user it is gated's own program: bubblewrap runs as root if gated does, and the agent must
// not.
func (v view) command(argv []string, stdio int) []string {
	if v.user.IsZero() {
		return append([]string{shell, "-c", gateScript(stdio), shell}, argv...)
	}
	order := enter.Order{User: v.user, Dir: v.shown, Gate: gateFD, Stdio: stdio, Command: argv}
	return append([]string{fmt.Sprintf("/proc/self/fd/%d", programFD)}, order.Args()...)
}

// args are the arguments up to the command. Later ones cover earlier ones: the data
// folder is hidden whatever made it visible, and the group's folder is mounted
// over that. There are no capabilities inside but those for becoming the user,
// which package enter gives up.
func (v view) args() []string {
	args := []string{
		"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
	}
	if !v.user.IsZero() {
		args = append(args, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
	}
	args = append(slices.Concat(args, v.system, v.accounts, v.network), "--proc", "/proc")
	// Without capabilities root still owns these, and some of them control the kernel.
	for _, path := range []string{"acpi", "asound", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger"} {
		args = append(args, "--ro-bind-try", "/proc/"+path, "/proc/"+path)
	}
	// Bubblewrap's own /dev/shm belongs to gated's user.
	args = append(args, "--dev", "/dev", "--size", strconv.Itoa(shmSize), "--perms", "1777", "--tmpfs", "/dev/shm")
	args = append(args, "--bind", v.temp, "/tmp")
	if v.bundle != "" {
		args = append(append(args, v.parents(BundlePath)...), "--ro-bind", v.bundle, BundlePath)
	}
	for _, path := range v.folders {
		args = append(args, "--perms", "0755", "--tmpfs", path)
	}
	for _, path := range v.readable {
		args = append(append(args, v.parents(path)...), "--ro-bind", path, path)
	}
	if !v.user.IsZero() {
		args = append(args, "--perms", "0755")
	}
	args = append(append(args, "--tmpfs", v.data), v.parents(v.shown)...)
	args = append(args, "--bind", v.dir, v.shown)
	args = append(args, "--remount-ro", v.data, "--remount-ro", "/")
	if v.user.IsZero() {
		args = append(args, "--chdir", v.shown) // else its user does it: root has no right to
	}
	return append(args, "--")
}

// parents make the folders above path, where something is bound: those that bubblewrap makes
// itself may be closed to the user.
func (v view) parents(path string) (args []string) {
	if v.user.IsZero() {
		return nil
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		args = append([]string{"--perms", "0755", "--dir", dir}, args...)
	}
	return args
}

// systemArgs mount the parts of the system that programs need, read-only. Of /etc these are
// names of hosts and users, and certificates: the rest is private to this machine.
func systemArgs() []string {
	// Bubblewrap closes folders that it makes for a file to other users.
	args := []string{"--ro-bind", "/usr", "/usr", "--perms", "0755", "--dir", "/etc"}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else {
			args = append(args, "--ro-bind-try", dir, dir)
		}
	}
	for _, path := range []string{
		"/opt", "/nix",
		"/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/fonts", "/etc/gai.conf",
		"/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki",
		"/etc/protocols", "/etc/services", "/etc/ssl", "/etc/terminfo", "/etc/timezone",
	} {
		args = append(args, "--ro-bind-try", path, path)
	}
	const builder = "/nix/var/nix/daemon-socket" // which fetches and builds for everyone
	if _, err := os.Stat(builder); err == nil {
		args = append(args, "--tmpfs", builder)
	}
	return args
}
