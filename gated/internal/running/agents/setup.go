package agents

import (
	"errors"
	"fmt"
	"time"

	"arizuko/gated/internal/running/agentuser"
	"arizuko/gated/internal/running/groupdir"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/config"
	"arizuko/pkg/groupconfig"
)

// setup is how one run's agent is run: by its group's configuration and the
// instance's defaults. It does not change while the run is served.
type setup struct {
	groupconfig.Config
	runtime runtime.Runtime
	env     []string
	redact  func(string) string
	growing func(string) string // redact for a text whose end is still to come
	// required are the limits that the group sets itself.
	required groupconfig.Limits
	// err is why the agent cannot be run; the other fields are the defaults then.
	err error
}

// groups reads how the groups' agents are run, and makes the groups' folders. It keeps nothing that changes.
type groups struct {
	env   *env
	dirs  *groupdir.Dirs
	users *agentuser.Users
}

// setup reads how a folder's agents are run. An invalid configuration is part of
// the result, in s.err.
func (g *groups) setup(folder string) (s setup, err error) {
	err = g.env.retryDB(g.env.ctx, "read group configuration", func() (err error) {
		var own groupconfig.Config
		own, s.err, err = g.config(folder)
		s.Config = own.Over(g.env.cfg.Defaults)
		s.required = own.Limits
		if err == nil && s.err == nil {
			s.err = g.env.cfg.Defaults.Agents.Check(own.Agent.Name)
		}
		if s.err == nil && own.Limits != (groupconfig.Limits{}) && s.Agent.Runtime == groupconfig.Process {
			s.err = errors.New("limits need the runtime bwrap or docker, not process")
		}
		return err
	})
	if s.err != nil {
		s.err = &runtime.SetupError{Err: fmt.Errorf("the configuration of group %s: %w", folder, s.err)}
	}
	if s.runtime = g.env.cfg.Runtimes[s.Agent.Runtime]; s.runtime == nil && s.err == nil {
		s.err = &runtime.SetupError{Err: fmt.Errorf("unknown runtime %q", s.Agent.Runtime)}
	}
	s.env = append(runtime.Environ(g.env.cfg.Environ, s.Agent.Env), s.Agent.Variables()...)
	s.redact, s.growing = g.redactors(s.env)
	return s, err
}

// Settings is how a group is run: its own configuration over the instance's. problems are the mistakes in it.
func (m *Manager) Settings(folder string) (c groupconfig.Config, problems, err error) {
	c, problems, err = m.groups.config(folder)
	return c.Over(m.env.cfg.Defaults), problems, err
}

// Owner is the user of a group's agents, zero for gated's own.
func (m *Manager) Owner(folder string) (runtime.User, error) {
	_, user, err := m.groups.dir(folder)
	return user, err
}

// problem is the text of an agent's error as it is stored.
func (s *setup) problem(text string) string {
	return agentproto.Truncate(s.redact(text), agentproto.MaxError)
}

func (s *setup) timeout() time.Duration { return time.Duration(s.Timeouts.Timeout) }

// config reads a group's own configuration; it is empty for a group that is
// not registered.
func (g *groups) config(folder string) (c groupconfig.Config, problems, err error) {
	stored, err := g.env.st.Group(g.env.ctx, folder)
	if err != nil || stored == nil {
		return c, nil, err
	}
	c, problems = groupconfig.Parse(stored.Config)
	return c, problems, nil
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

// redactors hide the secrets of an agent's environment, further ones of its run, and those of all agents;
// growing is for texts whose end is still to come.
func (g *groups) redactors(env []string, further ...string) (all, growing func(string) string) {
	own := config.NewRedactor(append(config.SecretValues(env), further...)...)
	all = func(s string) string { return g.env.cfg.Redact(own.String(s)) }
	growing = func(s string) string { return g.env.cfg.Growing(own.Growing(s)) }
	return all, growing
}
