package agents

import (
	"errors"
	"fmt"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/config"
	"arizuko/pkg/groupconfig"
)

// setup is how one run's agent is run: by its group's configuration and the
// instance's defaults. It does not change during the run.
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

// setup reads how a folder's agents are run. An invalid configuration is part of
// the result, in s.err.
func (m *Manager) setup(folder string) (s setup, err error) {
	err = m.retryDB(m.ctx, "read group configuration", func() (err error) {
		var own groupconfig.Config
		own, s.err, err = m.groupConfig(folder)
		s.Config = own.Over(m.cfg.Defaults)
		s.required = own.Limits
		if err == nil && s.err == nil {
			s.err = m.cfg.Defaults.Agents.Check(own.Agent.Name)
		}
		if s.err == nil && own.Limits != (groupconfig.Limits{}) && s.Agent.Runtime == groupconfig.Process {
			s.err = errors.New("limits need the runtime bwrap or docker, not process")
		}
		return err
	})
	if s.err != nil {
		s.err = &runtime.SetupError{Err: fmt.Errorf("the configuration of group %s: %w", folder, s.err)}
	}
	if s.runtime = m.cfg.Runtimes[s.Agent.Runtime]; s.runtime == nil && s.err == nil {
		s.err = &runtime.SetupError{Err: fmt.Errorf("unknown runtime %q", s.Agent.Runtime)}
	}
	s.env = append(runtime.Environ(m.cfg.Environ, s.Agent.Env), s.Agent.Variables()...)
	s.redact, s.growing = m.redactors(s.env)
	return s, err
}

// Settings is how a group is run: its own configuration over the instance's. problems are the mistakes in it.
func (m *Manager) Settings(folder string) (c groupconfig.Config, problems, err error) {
	c, problems, err = m.groupConfig(folder)
	return c.Over(m.cfg.Defaults), problems, err
}

// Owner is the user of a group's agents, zero for gated's own.
func (m *Manager) Owner(folder string) (runtime.User, error) {
	_, user, err := m.groupDir(folder)
	return user, err
}

// groupConfig reads a group's own configuration; it is empty for a group that is
// not registered.
func (m *Manager) groupConfig(folder string) (c groupconfig.Config, problems, err error) {
	g, err := m.st.Group(m.ctx, folder)
	if err != nil || g == nil {
		return c, nil, err
	}
	c, problems = groupconfig.Parse(g.Config)
	return c, problems, nil
}

// redactors hide the secrets of an agent's environment, further ones of its run, and what is hidden for all agents; growing is
// for texts whose end is still to come.
func (m *Manager) redactors(env []string, further ...string) (all, growing func(string) string) {
	own := config.NewRedactor(append(config.SecretValues(env), further...)...)
	all = func(s string) string { return m.cfg.Redact(own.String(s)) }
	growing = func(s string) string { return m.cfg.Growing(own.Growing(s)) }
	return all, growing
}
