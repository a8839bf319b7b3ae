// Package agentuser says which user of the machine runs a group's agents if gated is
// root: the owner of the group's folder.
package agentuser

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/dataowner"
)

// Numbers for groups, as users and as groups of the machine. They lie above those that
// adduser gives, below those of systemd (60001 and more) and of user namespaces, and
// within what a container with 65536 of them has. Those that the machine knows are
// left out.
const (
	First = 30000
	Last  = 59999
)

// Users gives groups' folders their owners. Its methods may be called from any
// goroutine.
type Users struct {
	root  bool   // gated is root
	data  string // the data folder
	fixed runtime.User
	log   *slog.Logger
	known func(id int) bool // the machine has a user or group with that number

	mu sync.Mutex // held while an owner is looked for and set
}

// New returns the users of this machine's agents: fixed for all groups, or if that is
// zero a number for each. A gated that is not root runs agents as its own user. data is
// the data folder.
func New(data string, fixed runtime.User, log *slog.Logger) *Users {
	return &Users{root: os.Getuid() == 0, data: data, fixed: fixed, log: log, known: known}
}

func known(id int) bool {
	_, noUser := user.LookupId(strconv.Itoa(id))
	_, noGroup := user.LookupGroupId(strconv.Itoa(id))
	return noUser == nil || noGroup == nil
}

// Describe says in a few words which user runs agents.
func (u *Users) Describe() string {
	switch {
	case !u.root:
		return "gated's own, " + User().String()
	case !u.fixed.IsZero():
		return u.fixed.String() + " (AGENT_USER)"
	}
	return fmt.Sprintf("a number for each group, from %d", First)
}

// User is gated's own user.
func User() runtime.User { return runtime.User{UID: os.Getuid(), GID: os.Getgid()} }

// Example is a user that agents may have, zero for gated's own.
func (u *Users) Example() runtime.User {
	if u.root && u.fixed.IsZero() {
		return runtime.User{UID: Last, GID: Last}
	}
	return u.fixed
}

// Claim returns the user that owns a group's folder, zero for gated's own. A folder
// that has none yet is given to its user with all that is in it. One that belongs to a
// user of the machine stays as it is: Claim returns a SetupError.
func (u *Users) Claim(dir string) (runtime.User, error) {
	if !u.root {
		return runtime.User{}, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	groups, top, err := u.open(dir)
	if err != nil {
		return runtime.User{}, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer groups.Close()
	defer top.Close()
	owner, err := ownerOf(top)
	if err != nil {
		return runtime.User{}, err
	}
	dataOwner, has, err := u.numbers()
	if err != nil {
		return runtime.User{}, err
	}
	user := u.fixed
	if user.IsZero() && has(owner.UID) {
		user = runtime.User{UID: owner.UID, GID: owner.UID}
	}
	if owner.UID != user.UID && owner.UID != 0 && owner.UID != dataOwner && !has(owner.UID) {
		return runtime.User{}, ofAnotherUser(dir, owner.UID)
	}
	if user.IsZero() {
		if user, err = u.next(groups); err != nil {
			return runtime.User{}, err
		}
	}
	if owner == user {
		return user, nil
	}
	u.log.Info("giving folder to user", "file", dir, "user", user.String())
	return user, u.give(top, has, owner, user)
}

// open opens a group's folder and the one that it is in. No link of the data folder's owner leads to them.
func (u *Users) open(dir string) (groups, top *os.File, err error) {
	in, err := filepath.Rel(u.data, filepath.Dir(dir))
	if err != nil {
		return nil, nil, err
	}
	root, err := dataowner.Open(u.data, in)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	if groups, err = root.Open("."); err != nil {
		return nil, nil, err
	}
	if top, err = openDir(int(groups.Fd()), filepath.Base(dir), dir); err != nil {
		return nil, nil, errors.Join(err, groups.Close())
	}
	return groups, top, nil
}

// ofAnotherUser is why a folder is not taken: its owner is neither root, nor a number of a
// group, nor the owner of the data folder, which an earlier gated may have run as.
func ofAnotherUser(dir string, owner int) error {
	name := strconv.Itoa(owner)
	if found, err := user.LookupId(name); err == nil {
		name = found.Username
	}
	return &runtime.SetupError{Err: fmt.Errorf(
		"user %s owns the folder %[2]s of the group, and gated, which is root, takes no user's files: "+
			"run `chown -R 0:0 '%[2]s'` to let gated give it to the group's agents, or set AGENT_USER=%[1]s to "+
			"run all agents as that user",
		name, dir)}
}

// numbers returns the data folder's owner, and a function that reports whether a number is of a group: a user of the
// machine may have one of the range, too, and even own the data folder. The function asks once for each number.
func (u *Users) numbers() (dataOwner int, has func(uid int) bool, err error) {
	var data unix.Stat_t
	if err := unix.Stat(u.data, &data); err != nil {
		return 0, nil, &os.PathError{Op: "stat", Path: u.data, Err: err}
	}
	dataOwner = int(data.Uid)
	known := map[int]bool{}
	return dataOwner, func(uid int) bool {
		if !inRange(uid) || uid == dataOwner {
			return false
		}
		if _, asked := known[uid]; !asked {
			known[uid] = u.known(uid)
		}
		return !known[uid]
	}, nil
}

func inRange(uid int) bool { return uid >= First && uid <= Last }

// next returns a number above those of the folders of all groups, or the lowest free one
// if there is none.
func (u *Users) next(groups *os.File) (runtime.User, error) {
	names, err := groups.Readdirnames(-1)
	if err != nil {
		return runtime.User{}, err
	}
	const count = Last - First + 1
	used := map[int]bool{}
	above := 0 // the highest number in use, from First
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Fstatat(int(groups.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) // else it is gone
		if uid := int(st.Uid); err == nil && inRange(uid) {
			used[uid], above = true, max(above, uid-First+1)
		}
	}
	for i := range count {
		id := First + (above+i)%count
		if !used[id] && !u.known(id) {
			return runtime.User{UID: id, GID: id}, nil
		}
	}
	return runtime.User{}, &runtime.SetupError{Err: fmt.Errorf("no user number from %d to %d is free: set AGENT_USER",
		First, Last)}
}

// Lookup finds a user by its name or number. Root, and users whose group is root's, are
// refused.
func Lookup(name string) (runtime.User, error) {
	found, err := user.Lookup(name)
	if uid, e := strconv.Atoi(name); err != nil && e == nil && uid >= 0 {
		if found, err = user.LookupId(name); err != nil { // a number without a name has its own group
			found, err = &user.User{Uid: name, Gid: name}, nil
		}
	}
	if err != nil {
		return runtime.User{}, fmt.Errorf("%q is neither the name of a user nor a number: %w", name, err)
	}
	uid, uidErr := strconv.ParseInt(found.Uid, 10, 32)
	gid, gidErr := strconv.ParseInt(found.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return runtime.User{}, err
	}
	if uid == 0 || gid == 0 {
		return runtime.User{}, fmt.Errorf("%q is root or in root's group: agents need a user of their own", name)
	}
	return runtime.User{UID: int(uid), GID: int(gid)}, nil
}
