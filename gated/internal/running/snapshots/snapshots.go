// Package snapshots remembers what turns changed in the groups' folders, so that it can be taken back.
//
// It looks at a group's folder before and after each turn. What has changed in between belongs to the turn that was
// running. The contents of all files are kept within a quota, so that both sides of a change can be restored:
//
//	<data>/undo/<folder>/index      each path, as it was at the last look
//	<data>/undo/<folder>/state      the turns that are running, and those that are known
//	<data>/undo/<folder>/turn-ID    what a turn changed
//	<data>/undo/<folder>/undo-ID    a restore that is not forgotten yet
//	<data>/undo/<folder>/objects/   contents, by hash
//
// If a file is lost or damaged there, less can be restored, and never more is changed.
package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/dataowner"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const (
	maxTurns        = 100 // known turns of a group; then so many are forgotten
	forgetTurns     = 20
	maxBeginCopying = 2 * time.Second
	maxCopying      = 5 * time.Second
	lockTimeout     = time.Minute
	lockRetry       = 5 * time.Millisecond
)

// Store remembers the turns of all groups. It is safe for concurrent use, by several processes, too.
type Store struct {
	Root  string                              // the folder undo of the data folder, absolute
	Quota int64                               // bytes of a group; nothing is remembered if it is not positive
	Dir   func(folder string) (string, error) // the folder of a group on the disk
	Log   *slog.Logger
	Now   func() time.Time

	groups  sync.Map                // a *memory by folder
	open    atomic.Int64            // how many of them have an open folder
	max     int                     // a test's maxEntries
	reached func(p failpoint.Point) // a test's, at failpoints
}

// Begin looks at a group's folder before a turn, or another attempt of it, starts to run. What it cannot copy within
// two seconds is left for later. After an error the turn is not covered.
func (s *Store) Begin(folder string, turn int64) error {
	return s.with(folder, func(g *group) error {
		err := g.look(s.Now().Add(maxBeginCopying))
		g.state.begin(turn)
		if err != nil {
			g.state.blind(notCompared)
		}
		return err
	})
}

// End looks at a group's folder once a turn has ended. Each turn that was begun must end, even if its process was
// killed: until then all changes in the folder count as its own. Ending it again has no effect.
func (s *Store) End(folder string, turn int64) error {
	return s.with(folder, func(g *group) error {
		if !slices.Contains(g.state.running, turn) {
			return nil
		}
		err := g.look(s.Now().Add(maxCopying))
		g.state.end(turn)
		return err
	})
}

// EndFormer ends the turns in a group's folder that were begun by a process which is gone, and are not open any more.
func (s *Store) EndFormer(folder string, open func(turn int64) bool) error {
	if _, err := os.Lstat(filepath.Join(s.Root, msg.DirName(folder), "state")); err != nil {
		return ignoreMissing(err)
	}
	return s.with(folder, func(g *group) (err error) {
		for _, turn := range slices.Clone(g.state.running) {
			if !open(turn) {
				err = errors.Join(err, g.look(s.Now().Add(maxCopying)))
				g.state.end(turn)
			}
		}
		return err
	})
}

// memory is what a process remembers of a group between two calls: it reads its files again only if another process has
// changed one since.
type memory struct {
	sync.Mutex

	own   *os.Root // where the group is remembered, nil before the first call
	top   *os.File // that folder
	lock  *os.File // held during a call
	as    entry    // of the folder, once the last call had ended: its time changes with each file
	state state
	saved []byte // the state as it is stored
	index []item
	known bool // there is an index
}

const (
	// objects is where contents are, in the folder where a group is remembered.
	objects = "objects"
	// maxRemembered is how long an index may be that stays in memory, and maxOpen how many groups do.
	maxRemembered = 100
	maxOpen       = 200
)

// group is what is known of a group while it is locked.
type group struct {
	*Store
	*memory
	dir       *os.Root // the group's folder
	restoring int64    // a turn that must not be forgotten
	name      string
}

// with locks a group, finishes the restores that a crash has interrupted, and stores the state that do leaves.
func (s *Store) with(name string, do func(*group) error) (err error) {
	if s.Quota <= 0 {
		return nil
	}
	m := s.memoryOf(name)
	m.Lock()
	defer m.Unlock()
	g := &group{Store: s, memory: m, name: name}
	defer func() {
		if g.dir != nil {
			_ = g.dir.Close()
		}
		if err != nil || len(m.index) > maxRemembered || s.open.Load() > maxOpen {
			g.leave()
		} else {
			_ = unix.Flock(int(g.lock.Fd()), unix.LOCK_UN)
		}
		if err != nil {
			err = fmt.Errorf("files of group %s: %w", name, err)
		}
	}()
	if err := g.enter(); err != nil {
		return err
	}
	err = errors.Join(do(g), g.saveState())
	m.as = g.stamp(true)
	return err
}

// leave forgets what is in memory.
func (g *group) leave() {
	if g.own == nil {
		return
	}
	_ = errors.Join(g.own.Close(), g.top.Close(), g.lock.Close()) // which unlocks it
	g.own, g.top, g.lock, g.as, g.state, g.saved, g.index, g.known = nil, nil, nil, entry{}, state{}, nil, nil, false
	g.open.Add(-1)
}

func (s *Store) memoryOf(name string) *memory {
	m, ok := s.groups.Load(name)
	if !ok {
		m, _ = s.groups.LoadOrStore(name, &memory{})
	}
	return m.(*memory)
}

// stamp is the entry of the folder where the group is remembered. A new one has a time that no change of a file gives
// the folder: those are of the kernel's ticks.
func (g *group) stamp(fresh bool) (e entry) {
	if fresh {
		now := unix.NsecToTimespec(time.Now().UnixNano() | 1)
		_ = unix.UtimesNanoAt(int(g.top.Fd()), ".", []unix.Timespec{now, now}, 0) // else it is read again
	}
	e, _, _ = statAt(int(g.top.Fd()), "") // else it is read again
	return e
}

// enter locks a group and opens its folders. It reads what another process has changed.
func (g *group) enter() error {
	if g.own == nil {
		own, err := dataowner.Make(filepath.Dir(g.Root), filepath.Join(filepath.Base(g.Root), msg.DirName(g.name)))
		if err != nil {
			return err
		}
		if err := own.Mkdir(objects, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return errors.Join(err, own.Close())
		}
		if g.lock, err = own.OpenFile("lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return errors.Join(err, own.Close())
		}
		if g.top, err = own.Open("."); err != nil {
			return errors.Join(err, g.lock.Close(), own.Close())
		}
		g.own = own
		g.open.Add(1)
	}
	if err := flock(g.lock); err != nil {
		return err
	}
	path, err := g.Dir(g.name)
	if err != nil {
		return err
	}
	data := filepath.Dir(g.Root)
	below, err := filepath.Rel(data, path)
	if err != nil {
		return err
	}
	if g.dir, err = dataowner.Open(data, below); err != nil {
		return err
	}
	if as := g.stamp(false); as != (entry{}) && as == g.as {
		return nil
	}
	if err = g.loadState(); err == nil {
		g.loadIndex()
		err = g.finishRestores()
	}
	return err
}

// flock locks a file, or fails if another process has it for too long.
func flock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for end := time.Now().Add(lockTimeout); errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(end); {
		<-time.After(lockRetry)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	return err
}

func (s *Store) at(p failpoint.Point) {
	failpoint.At(p)
	if s.reached != nil {
		s.reached(p)
	}
}

// state says which turns are known.
type state struct {
	running []int64
	known   []turn // in the order of their first Begin
	size    int64  // bytes of the objects
}

type turn struct {
	id    int64
	blind string // why it is not known what it changed
}

// saveState stores the state if it has changed.
func (g *group) saveState() error {
	c := newCoder(body)
	if g.state.code(c); bytes.Equal(c.data[body:], g.saved) {
		return nil
	}
	g.saved = nil
	err := write(g.own, "state", false, c)
	if err == nil {
		g.saved = c.data[body:]
	}
	return err
}

func (g *group) loadState() error {
	g.state = state{}
	_, err := load(g.own, "state", g.state.code)
	c := newCoder(0)
	g.state.code(c)
	g.saved = c.data
	if errors.Is(err, errDamaged) {
		g.Log.Warn("the state of /undo is damaged, earlier turns are unknown", "folder", g.name, "err", err)
		g.state, g.saved = state{}, nil
		return g.dropIndex()
	}
	return err
}

func (s *state) find(id int64) *turn {
	for i := range s.known {
		if s.known[i].id == id {
			return &s.known[i]
		}
	}
	return nil
}

func (s *state) begin(id int64) {
	if !slices.Contains(s.running, id) {
		s.running = append(s.running, id)
	}
	if s.find(id) == nil {
		s.known = append(s.known, turn{id: id})
	}
}

func (s *state) end(id int64) {
	s.running = slices.DeleteFunc(s.running, func(other int64) bool { return other == id })
}

// blind says why the changes of the running turns are not known.
func (s *state) blind(why string) {
	for _, id := range s.running {
		if t := s.find(id); t != nil && t.blind == "" {
			t.blind = why
		}
	}
}

func (s *state) code(c *coder) {
	list(c, &s.running, c.number)
	list(c, &s.known, func(t *turn) {
		c.number(&t.id)
		c.text(&t.blind)
	})
	c.number(&s.size)
}
