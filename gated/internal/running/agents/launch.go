package agents

import (
	"fmt"
	"path/filepath"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/store"
)

func (r *run) launch() error {
	spec, err := r.spec()
	if err != nil {
		return err
	}
	proc, err := r.setup.runtime.Start(r.m.ctx, spec)
	if err != nil {
		return err
	}
	r.proc = proc
	failpoint.At(failpoint.Spawned)
	// The process has received nothing yet. From here on a restart can find it.
	err = r.m.persist(r.m.ctx, func(tx *store.Tx) error {
		return tx.RecordProcess(r.row.ID, proc.PID(), proc.PIDStart(), proc.Label())
	})
	if err != nil { // gated is being killed
		go proc.Stop(0)
		for range proc.Events() {
		}
	}
	return err
}

// spec is how the runtime starts the process.
func (r *run) spec() (s runtime.Spec, err error) {
	if r.setup.err != nil {
		return s, r.setup.err
	}
	agent := r.setup.Agent
	s = runtime.Spec{
		RunID: r.row.ID, Folder: r.row.Folder, Command: agent.Command, Image: agent.Image, Limits: r.setup.Limits, Required: r.setup.required,
		Env: r.setup.env, Redact: r.setup.redact, OutputGrace: r.m.cfg.Graces.EOF,
	}
	if s.Dir, s.User, err = r.m.groupDir(r.row.Folder); err != nil {
		return s, err
	}
	s.Data = r.m.cfg.Data
	s.LogPath = filepath.Join(r.m.cfg.Logs, filepath.FromSlash(r.row.Folder), fmt.Sprintf("run-%d.log", r.row.ID))
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

// groupDir makes a group's folder unless it exists. user is whom it belongs to, zero
// for gated's own.
func (m *Manager) groupDir(folder string) (dir string, user runtime.User, err error) {
	if dir, err = m.groups.Make(folder); err != nil {
		return "", user, err
	}
	user, err = m.users.Claim(dir)
	return dir, user, err
}
