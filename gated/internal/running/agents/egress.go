package agents

import (
	"context"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// Egress is how a run whose network is ask reaches the outside.
type Egress struct {
	Proxy  string   // the proxy's address on this machine, host:port
	Bundle string   // a file with the certificates that its programs trust
	Env    []string // by which they find both, and the tokens that stand for secrets
	Hidden []string // what must not be shown
}

// OpenEgress makes a run's way out. An error is one of starting the run.
type OpenEgress func(ctx context.Context, run msg.Run, agent groupconfig.Agent) (Egress, error)

// openEgress makes the run's way out if it has only that one.
func (a *agent) openEgress() (err error) {
	if a.setup.err == nil && a.setup.Agent.Network == groupconfig.NetworkAsk && a.env.cfg.Egress != nil {
		a.egress, err = a.env.cfg.Egress(a.env.ctx, a.row, a.setup.Agent)
	}
	return err
}
