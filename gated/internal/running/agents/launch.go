package agents

import (
	"fmt"
	"path/filepath"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/store"
)

func (a *agent) launch() error {
	spec, err := a.spec()
	if err != nil {
		return err
	}
	proc, err := a.setup.runtime.Start(a.env.ctx, spec)
	if err != nil {
		return err
	}
	a.proc = proc
	failpoint.At(failpoint.Spawned)
	// The process has received nothing yet. From here on a restart can find it.
	err = a.env.persist(a.env.ctx, func(tx *store.Tx) error {
		return rows.RecordProcess(tx, a.row.ID, proc.PID(), proc.PIDStart(), proc.Label())
	})
	if err != nil { // gated is being killed
		go proc.Stop(0)
		for range proc.Events() {
		}
	}
	return err
}

// spec is how the runtime starts the process.
func (a *agent) spec() (s runtime.Spec, err error) {
	if a.setup.err != nil {
		return s, a.setup.err
	}
	c := a.setup.Agent
	s = runtime.Spec{
		RunID: a.row.ID, Folder: a.row.Folder, Command: c.Command, Image: c.Image, Limits: a.setup.Limits,
		Required: a.setup.required,
		Env:      a.setup.env, Redact: a.setup.redact, OutputGrace: a.env.cfg.Graces.EOF,
	}
	if s.Dir, s.User, err = a.groups.dir(a.row.Folder); err != nil {
		return s, err
	}
	s.Data = a.env.cfg.Data
	s.LogPath = filepath.Join(a.env.cfg.Logs, filepath.FromSlash(a.row.Folder), fmt.Sprintf("run-%d.log", a.row.ID))
	in, err := filepath.Rel(s.Data, filepath.Dir(s.LogPath))
	if err != nil {
		return s, err
	}
	logs, err := dataowner.Make(s.Data, in)
	if err != nil {
		return s, err
	}
	return s, logs.Close()
}

// dir makes a group's folder unless it exists. user is whom it belongs to, zero
// for gated's own.
func (g *groups) dir(folder string) (dir string, user runtime.User, err error) {
	if dir, err = g.dirs.Make(folder); err != nil {
		return "", user, err
	}
	user, err = g.users.Claim(dir)
	return dir, user, err
}
