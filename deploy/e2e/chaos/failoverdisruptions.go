package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"arizuko/pkg/testkit/link"
	"arizuko/pkg/testkit/patroni"
)

// How long disruptions last: longer than leases, and those of the primary longer than Patroni's.
const (
	shortDisruption = time.Second
	leaseDisruption = 20 * time.Second
	downDisruption  = 25 * time.Second
	ttlDisruption   = 40 * time.Second
)

// clusterDisruption disrupts daemons, machines or servers for a time.
type clusterDisruption struct {
	name       string
	length     time.Duration
	begin, end func(ctx context.Context) error
}

// disruptions are all, in a fixed order. Their targets are chosen when they begin.
func (c *cluster) disruptions() []clusterDisruption {
	all := []clusterDisruption{c.machineKilled(), c.machineSuspended(), c.machineCutOff(link.Reset),
		c.machineCutOff(link.Hole)}
	for _, name := range daemons {
		all = append(all, c.daemonKilled(name), c.daemonSuspended(name))
	}
	return append(all, c.primaryKilled(), c.primaryServerKilled(), c.primarySuspended(), c.patroniSuspended(),
		c.primaryIsolated(link.Reset), c.primaryIsolated(link.Hole),
		c.standbyKilled(), c.etcdKilled(1), c.etcdKilled(2), c.switchedOver())
}

// nothing is the end of a disruption that ends by itself.
func nothing(context.Context) error { return nil }

// daemonKilled kills the one of a daemon that works. Its supervisor starts it again.
func (c *cluster) daemonKilled(name string) clusterDisruption {
	return clusterDisruption{name + " killed", shortDisruption, func(ctx context.Context) error {
		m, err := c.working(ctx, name)
		if err != nil {
			return err
		}
		return m.signal(syscall.SIGKILL, name)
	}, nothing}
}

// daemonSuspended suspends the one of a daemon that works, for longer than its lease.
func (c *cluster) daemonSuspended(name string) clusterDisruption {
	var m *machine
	return clusterDisruption{name + " suspended", leaseDisruption, func(ctx context.Context) (err error) {
		if m, err = c.working(ctx, name); err != nil {
			return err
		}
		return m.signal(syscall.SIGSTOP, name)
	}, func(context.Context) error { return m.signal(syscall.SIGCONT, name) }}
}

// machineKilled kills the machine on which messages are decided.
func (c *cluster) machineKilled() clusterDisruption {
	var m *machine
	return clusterDisruption{"machine killed", downDisruption, func(ctx context.Context) (err error) {
		if m, err = c.working(ctx, "gated"); err != nil {
			return err
		}
		return m.kill()
	}, func(context.Context) error {
		m.revive()
		return nil
	}}
}

// machineSuspended suspends all daemons of a machine for longer than their leases.
func (c *cluster) machineSuspended() clusterDisruption {
	var m *machine
	return clusterDisruption{"machine suspended", leaseDisruption, func(ctx context.Context) (err error) {
		if m, err = c.working(ctx, "gated"); err != nil {
			return err
		}
		return m.signal(syscall.SIGSTOP, daemons...)
	}, func(context.Context) error { return m.signal(syscall.SIGCONT, daemons...) }}
}

// machineCutOff cuts a machine off from the servers. Its agents and platforms stay reachable.
func (c *cluster) machineCutOff(cut link.Cut) clusterDisruption {
	var m *machine
	return clusterDisruption{fmt.Sprintf("machine cut off from the servers (%s)", cut), leaseDisruption,
		func(ctx context.Context) (err error) {
			if m, err = c.working(ctx, "gated"); err == nil {
				m.cutOff(cut)
			}
			return err
		}, func(context.Context) error {
			m.cutOff(link.None)
			return nil
		}}
}

// primaryKilled kills the primary and its Patroni, until another server is the primary.
func (c *cluster) primaryKilled() clusterDisruption {
	var n int
	return clusterDisruption{"primary's machine killed", 0, func(ctx context.Context) (err error) {
		if n, err = c.servers.AwaitPrimary(ctx, -1); err == nil {
			err = c.servers.Kill(n)
		}
		return err
	}, func(ctx context.Context) error {
		if _, err := c.servers.AwaitPrimary(ctx, n); err != nil {
			return err
		}
		return c.servers.Revive(n)
	}}
}

// primaryServerKilled kills the primary. Its Patroni starts it again.
func (c *cluster) primaryServerKilled() clusterDisruption {
	return clusterDisruption{"primary's server killed", shortDisruption, func(ctx context.Context) error {
		n, err := c.servers.AwaitPrimary(ctx, -1)
		if err == nil {
			err = c.servers.KillServer(n)
		}
		return err
	}, nothing}
}

// primarySuspended suspends the primary and its Patroni until after another is the primary: it then wakes up as a
// second one.
func (c *cluster) primarySuspended() clusterDisruption {
	var n int
	return clusterDisruption{"primary's machine suspended", ttlDisruption, func(ctx context.Context) (err error) {
		if n, err = c.servers.AwaitPrimary(ctx, -1); err == nil {
			err = c.servers.Suspend(n)
		}
		return err
	}, func(context.Context) error { return c.servers.Resume(n) }}
}

// patroniSuspended suspends the primary's Patroni until after another is the primary: the server itself believes all
// the time that it is the primary, and takes connections.
func (c *cluster) patroniSuspended() clusterDisruption {
	var n int
	return clusterDisruption{"primary's Patroni suspended", ttlDisruption, func(ctx context.Context) (err error) {
		if n, err = c.servers.AwaitPrimary(ctx, -1); err == nil {
			err = c.servers.SuspendPatroni(n)
		}
		return err
	}, func(context.Context) error { return c.servers.ResumePatroni(n) }}
}

// primaryIsolated cuts the primary off from etcd and its standbys, while daemons reach it.
func (c *cluster) primaryIsolated(cut link.Cut) clusterDisruption {
	var n int
	return clusterDisruption{fmt.Sprintf("primary cut off from etcd and standbys (%s)", cut), ttlDisruption,
		func(ctx context.Context) (err error) {
			if n, err = c.servers.AwaitPrimary(ctx, -1); err == nil {
				c.servers.Isolate(n, cut)
			}
			return err
		}, func(context.Context) error {
			c.servers.Isolate(n, link.None)
			return nil
		}}
}

// standbyKilled kills the standby that the primary waits for.
func (c *cluster) standbyKilled() clusterDisruption {
	n := -1
	return clusterDisruption{"synchronous standby killed", downDisruption, func(ctx context.Context) error {
		if n = c.servers.Synchronous(ctx); n < 0 {
			return fmt.Errorf("no server is the synchronous standby")
		}
		return c.servers.Kill(n)
	}, func(context.Context) error { return c.servers.Revive(n) }}
}

// etcdKilled kills some of three members: of two, the third one answers nothing, and no server may be the primary.
func (c *cluster) etcdKilled(count int) clusterDisruption {
	killed := c.loaded.random.Perm(patroni.Nodes)[:count]
	return clusterDisruption{fmt.Sprintf("%d of %d members of etcd killed", count, patroni.Nodes), leaseDisruption,
		func(context.Context) error { return onEach(killed, c.servers.KillEtcd) },
		func(context.Context) error { return onEach(killed, c.servers.ReviveEtcd) }}
}

func onEach(nodes []int, do func(n int) error) (err error) {
	for _, n := range nodes {
		err = errors.Join(err, do(n))
	}
	return err
}

// switchedOver makes the standby the primary, as before an upgrade.
func (c *cluster) switchedOver() clusterDisruption {
	return clusterDisruption{"primary switched over", shortDisruption, c.servers.Switchover, nothing}
}
