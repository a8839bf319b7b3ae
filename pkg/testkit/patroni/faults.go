package patroni

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"arizuko/pkg/testkit/link"
)

// Kill kills the server of a node and its Patroni, as the end of the machine does. The member of etcd goes on.
func (c *Cluster) Kill(n int) error { return c.nodes[n].kill() }

// KillServer kills the server of a node, which its Patroni starts again or replaces.
func (c *Cluster) KillServer(n int) error { return c.nodes[n].killServer() }

// Revive starts Patroni on a node again, which starts the server: as the standby of a primary that there is meanwhile.
func (c *Cluster) Revive(n int) error { return c.nodes[n].startPatroni() }

// Suspend stops the server of a node and its Patroni until Resume: connections to it stay, and nothing answers. Patroni
// is stopped while it asks the server, as it is when a disk hangs: it has read the leader's key then, and when it
// resumes it decides by that.
func (c *Cluster) Suspend(n int) error {
	err := c.nodes[n].signalServer(syscall.SIGSTOP)
	<-time.After(loopWait*time.Second + pollInterval)
	return errors.Join(err, c.nodes[n].patroni.signal(syscall.SIGSTOP))
}

// Resume continues a suspended node, the server first: it does not know yet of the changes meanwhile.
func (c *Cluster) Resume(n int) error {
	return errors.Join(c.nodes[n].signalServer(syscall.SIGCONT), c.nodes[n].patroni.signal(syscall.SIGCONT))
}

// SuspendPatroni stops the Patroni of a node until ResumePatroni. Its server goes on, and after a failover believes
// that it is still the primary.
func (c *Cluster) SuspendPatroni(n int) error { return c.nodes[n].patroni.signal(syscall.SIGSTOP) }

// ResumePatroni continues a Patroni after SuspendPatroni.
func (c *Cluster) ResumePatroni(n int) error { return c.nodes[n].patroni.signal(syscall.SIGCONT) }

// Isolate cuts a node off from etcd and from the other nodes, or connects it again with link.None. Clients reach its
// server as before.
func (c *Cluster) Isolate(n int, cut link.Cut) {
	for _, l := range c.nodes[n].links {
		l.Set(cut)
	}
}

// KillEtcd kills a node's member of etcd.
func (c *Cluster) KillEtcd(n int) error { return c.nodes[n].etcd.kill() }

// ReviveEtcd starts it again.
func (c *Cluster) ReviveEtcd(n int) error { return c.nodes[n].startEtcd() }

// Switchover makes a synchronous standby the primary, as an operator does before an upgrade of the primary's machine.
func (c *Cluster) Switchover(ctx context.Context) error {
	primary, err := c.AwaitPrimary(ctx, -1)
	if err != nil {
		return err
	}
	p, err := c.run(c.nodes[primary].dir, "patronictl", "switchover", "arizuko", "--force")
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.kill())
	case <-p.ended:
	}
	if !p.process.ProcessState.Success() {
		return fmt.Errorf("patronictl switchover: %s\n%s", p.process.ProcessState, c.Logs(primary))
	}
	return nil
}
