// Package enter is the last step before an agent: gated runs its own program again,
// as `gated enter`, and that becomes the agent. In between it makes the agent's
// files reachable for the agent's user, becomes that user, and gives up every
// privilege.
package enter

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime/netsetup"
)

const (
	// Name is the subcommand.
	Name = "enter"
	// Prefix begins the line on stderr that says why the agent was not reached.
	Prefix = "gated enter: "
	// ExitFailed is the exit code with that line. An agent may use it too.
	ExitFailed = 125
	// GoAhead is the line that Order.Gate must bring.
	GoAhead = "\n"
)

// User is a user and its only group.
type User struct{ UID, GID int }

// IsZero reports whether no user is set. Root is never set.
func (u User) IsZero() bool { return u == User{} }

func (u User) String() string { return fmt.Sprintf("%d:%d", u.UID, u.GID) }

// parseUser refuses root, and root's group.
func parseUser(text string) (User, error) {
	uid, gid, _ := strings.Cut(text, ":")
	u, uidErr := strconv.ParseUint(uid, 10, 31)
	g, gidErr := strconv.ParseUint(gid, 10, 31)
	if uidErr != nil || gidErr != nil || u == 0 || g == 0 {
		return User{}, fmt.Errorf("user %q: want uid:gid, neither of them 0", text)
	}
	return User{int(u), int(g)}, nil
}

// Order describes a program and how to run it. Its values are visible in the process list until the agent runs.
type Order struct {
	// User is who the agent becomes; zero leaves user, groups and capabilities as
	// they are.
	User User
	// Dir is the working directory.
	Dir string
	// Reach makes Dir, Paths and Readable reachable for the user: what closed folders
	// keep from it is mounted over those. It takes the rights of root.
	Reach bool
	// Paths are further files and folders that the user must be able to reach, such as
	// its temporary folder. They and Dir have to belong to the user.
	Paths []string
	// Readable are files and folders of others that the user must be able to reach. Of a
	// folder that is closed to the user the entries are shown, as far as their own modes
	// allow. Those that do not exist are left out.
	Readable []string
	// Gate is a descriptor from which GoAhead is read before anything else; 0 is none.
	// Its end means that gated has ended: the command must not run.
	Gate int
	// Stdio is the descriptor of the command's stdin, the next one that of its stdout; 0: those of this program.
	Stdio int
	// Command is the program, by its path, and its arguments.
	Command []string
}

// Args are the arguments of the program that calls Intercept: the name, the order as a query, and the command.
func (o Order) Args() []string {
	v := url.Values{"dir": {o.Dir}, "path": o.Paths, "readable": o.Readable}
	if !o.User.IsZero() {
		v.Set("user", o.User.String())
	}
	for name, n := range map[string]int{"gate": o.Gate, "stdio": o.Stdio} {
		v.Set(name, strconv.Itoa(n))
	}
	v.Set("reach", strconv.FormatBool(o.Reach))
	return append([]string{Name, v.Encode()}, o.Command...)
}

func parse(args []string) (o Order, err error) {
	if len(args) < 2 {
		return o, errors.New("no command")
	}
	v, err := url.ParseQuery(args[0])
	if v.Has("user") && err == nil {
		o.User, err = parseUser(v.Get("user"))
	}
	var reachErr, gateErr, stdioErr error
	o.Reach, reachErr = strconv.ParseBool(v.Get("reach"))
	o.Gate, gateErr = strconv.Atoi(v.Get("gate"))
	o.Stdio, stdioErr = strconv.Atoi(v.Get("stdio"))
	o.Dir, o.Paths, o.Readable, o.Command = v.Get("dir"), v["path"], v["readable"], args[1:]
	return o, errors.Join(err, reachErr, gateErr, stdioErr)
}

// Intercept carries out the command line if that is of Args, or of package netsetup,
// and does not return then. It comes first in main, before anything else is set up.
// environ is for the command.
func Intercept(environ []string) {
	netsetup.Intercept()
	if len(os.Args) < 2 || os.Args[1] != Name {
		return
	}
	// Capabilities and mount namespaces are of threads, and execve keeps those of its own.
	goruntime.LockOSThread()
	o, err := parse(os.Args[2:])
	if err == nil {
		err = o.run(environ)
	}
	fmt.Fprintf(os.Stderr, "%s%v\n", Prefix, err)
	os.Exit(ExitFailed)
}

// run returns only errors.
func (o Order) run(environ []string) error {
	if err := closeOnExec(); err != nil {
		return err
	}
	if o.Gate > 0 {
		gate := os.NewFile(uintptr(o.Gate), "gate")
		defer gate.Close()
		if _, err := io.ReadFull(gate, make([]byte, len(GoAhead))); err != nil {
			return fmt.Errorf("gated has ended before the agent was started: %w", err)
		}
	}
	if o.Stdio > 0 {
		if err := errors.Join(unix.Dup3(o.Stdio, 0, 0), unix.Dup3(o.Stdio+1, 1, 0)); err != nil {
			return fmt.Errorf("take stdin and stdout: %w", err)
		}
	}
	if o.Reach {
		if err := o.reach(); err != nil {
			return err
		}
	}
	if !o.User.IsZero() {
		if err := o.User.become(); err != nil {
			return fmt.Errorf("become user %s: %w", o.User, err)
		}
	}
	if err := os.Chdir(o.Dir); err != nil {
		return fmt.Errorf("%w: agents run as user %s, who must be able to enter their folder", err, o.User)
	}
	return &os.PathError{Op: "execute", Path: o.Command[0], Err: syscall.Exec(o.Command[0], o.Command, environ)}
}

// closeOnExec keeps every descriptor but the standard ones from the agent.
func closeOnExec() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// become changes user, groups and capabilities of the calling thread, for good.
func (u User) become() error {
	if err := netsetup.DropBounding(); err != nil {
		return err
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("leave groups: %w", err)
	}
	if err := syscall.Setresgid(u.GID, u.GID, u.GID); err != nil {
		return err
	}
	if err := syscall.Setresuid(u.UID, u.UID, u.UID); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
