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
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/dataowner"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const (
	maxTurns        = 1000 // known turns of a group; then the oldest is forgotten
	maxBeginCopying = 2 * time.Second
	maxCopying      = 5 * time.Second
)

// Store remembers the turns of all groups. It is safe for concurrent use. Only one process may use a folder at a time.
type Store struct {
	Root  string                              // the folder undo of the data folder, absolute
	Quota int64                               // bytes of a group; nothing is remembered if it is not positive
	Dir   func(folder string) (string, error) // the folder of a group on the disk
	Log   *slog.Logger
	Now   func() time.Time

	groups  sync.Map                // a *memory by folder
	live    sync.Map                // turns that this process has begun; false once a call for one has failed
	max     int                     // a test's maxEntries
	reached func(p failpoint.Point) // a test's, at failpoints
}

// Begin looks at a group's folder before a turn, or another attempt of it, starts to run. What it cannot copy within
// two seconds is left for later. After an error the turn is not covered.
func (s *Store) Begin(folder string, turn int64) error {
	err := s.with(folder, func(g *group) error {
		err := g.look(turn, s.Now().Add(maxBeginCopying))
		err = errors.Join(err, g.begin(turn))
		if err != nil {
			g.state.blind(notCompared)
		}
		s.live.Store(turn, true)
		return err
	})
	if err != nil {
		s.live.Store(turn, false)
	}
	return err
}

// End looks at a group's folder once a turn has ended. After an error the turn is not covered, since it is not known
// which changes are its own. Ending it again has no effect.
func (s *Store) End(folder string, turn int64) error {
	err := s.with(folder, func(g *group) error {
		if !slices.Contains(g.state.running, turn) {
			return nil
		}
		err := g.look(turn, s.Now().Add(maxCopying))
		g.state.end(turn)
		s.live.Delete(turn)
		return err
	})
	if err != nil {
		s.live.Store(turn, false)
	}
	return err
}

// EndFormer ends the turns in a group's folder that a process had begun which is gone. It comes before any other call.
// last is the newest turn there is: newer ones are of a database that has been replaced, and are forgotten.
func (s *Store) EndFormer(folder string, last int64) error {
	if _, err := os.Lstat(filepath.Join(s.Root, msg.DirName(folder), "state")); err != nil {
		return ignoreMissing(err)
	}
	return s.with(folder, func(g *group) (err error) {
		if len(g.state.running) > 0 {
			err = g.compare(s.Now().Add(maxCopying))
		}
		g.state.running = nil
		for n := len(g.state.known) - 1; n >= 0; n-- {
			if g.state.known[n].id > last {
				err = errors.Join(err, g.forget(n))
			}
		}
		return err
	})
}

const (
	// objects is where contents are, in the folder where a group is remembered.
	objects = "objects"
	// maxRemembered is how long an index may be that stays in memory.
	maxRemembered = 100
)

// memory is what stays in memory of a group between two calls.
type memory struct {
	sync.Mutex
	loaded bool // the other fields are as they are stored, and no restore is interrupted
	state  state
	saved  []byte // the state as it is stored
	index  []item
	known  bool // there is an index
}

// group is what is known of a group while it is locked.
type group struct {
	*Store
	*memory
	name string
	own  *os.Root // where it is remembered
	dir  *os.Root // the group's folder
}

// with locks a group, finishes the restores that a crash has interrupted, and stores the state that do leaves.
func (s *Store) with(name string, do func(*group) error) error {
	if s.Quota <= 0 {
		return nil
	}
	m, _ := s.groups.LoadOrStore(name, &memory{})
	g := &group{Store: s, memory: m.(*memory), name: name}
	g.Lock()
	defer g.Unlock()
	var err error
	g.own, err = dataowner.Make(filepath.Dir(s.Root), filepath.Join(filepath.Base(s.Root), msg.DirName(name)))
	if err != nil {
		return err
	}
	defer g.own.Close()
	path, err := s.Dir(name)
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
	defer g.dir.Close()
	if !g.loaded {
		err = g.load()
	}
	if g.loaded = false; err == nil {
		err = errors.Join(do(g), g.saveState())
		g.loaded = err == nil && len(g.index) <= maxRemembered
	}
	return err
}

func (g *group) load() error {
	if err := g.loadState(); err != nil {
		return err
	}
	g.loadIndex()
	return g.finishRestores()
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
	size  int64  // bytes of its record
}

// saveState stores the state if it has changed.
func (g *group) saveState() error {
	c := newCoder(body)
	g.state.code(c)
	if bytes.Equal(c.data[body:], g.saved) {
		return nil
	}
	err := write(g.own, "state", false, c)
	if err == nil {
		g.saved = c.data[body:]
	}
	return err
}

func (g *group) loadState() error {
	g.state, g.saved = state{}, nil
	_, err := load(g.own, "state", g.state.code)
	if errors.Is(err, errDamaged) {
		g.Log.Warn("the state of /undo is damaged, earlier turns are unknown", "folder", g.name, "err", err)
		g.state = state{}
		return g.dropIndex()
	}
	c := newCoder(0)
	g.state.code(c)
	g.saved = c.data
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

// begin lets a turn be running.
func (g *group) begin(id int64) error {
	if !slices.Contains(g.state.running, id) {
		g.state.running = append(g.state.running, id)
	}
	if g.state.find(id) == nil {
		g.state.known = append(g.state.known, turn{id: id})
	}
	if len(g.state.known) > maxTurns {
		return g.forget(0)
	}
	return nil
}

// forget forgets the nth of the known turns. The state comes first: one without a record is one that changed nothing.
func (g *group) forget(n int) error {
	t := g.state.known[n]
	g.state.known = slices.Delete(g.state.known, n, n+1)
	if err := g.saveState(); err != nil {
		return err
	}
	return g.saveRecord(&t, nil)
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
		c.number(&t.size)
	})
	c.number(&s.size)
}
