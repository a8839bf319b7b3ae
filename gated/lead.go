package main

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"arizuko/gated/internal/running/agents"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
)

const (
	// leadLease is the lease of the one gated, of all that share a database, that does what is not about single chats.
	leadLease = "gated"
	// shards is into how many parts several gated divide the chats: more than there are machines, so that each has
	// about as many chats.
	shards = 32
)

// peers is the place of this gated among those that share its database.
func (g *gated) peers() agents.Peers {
	if g.Leases == nil {
		return agents.Peers{}
	}
	return agents.Peers{Self: g.Leases.ID, Former: g.Leases.Former, Groups: g.cfg.Groups, Ended: g.Leases.Ended()}
}

// decide decides the messages of all chats, or of those that are this gated's part of them. When a gated ends, others
// go on from the rows.
func (g *gated) decide(ctx context.Context) error {
	if g.Leases == nil {
		return g.gateway.Run(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.gateway.Run(ctx) })
	group.Go(func() error { return g.Leases.Share(ctx, leadLease, shards, g.gateway.Divide) })
	err := group.Wait()
	g.Leases.Unshare(leadLease) // the agents may still work for a while
	return err
}

// lead returns a loop that waits until this gated is the one that leads, and then runs loops. When that one ends,
// another goes on from the rows.
func (g *gated) lead(loops ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := g.Leases.Hold(ctx, leadLease, func(holder *rows.Process) {
			if holder != nil {
				g.Log.Info("another gated leads: it runs reminders, polls, broadcasts and upkeep", "process", holder.ID,
					"place", holder.Place)
			}
		})
		if err != nil {
			return err
		}
		g.Heartbeat.Refresh() // the row of gated is this one's from now on
		group, ctx := errgroup.WithContext(ctx)
		for _, loop := range loops {
			group.Go(func() error { return loop(ctx) })
		}
		return group.Wait()
	}
}

// forwardPokes makes each poke reach the gateway, the agents, the reminders and the transcripts: a peer may have
// changed something for each of them.
func (g *gated) forwardPokes(ctx context.Context) error {
	if g.Leases == nil {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.Wake.C():
		}
		select {
		case g.pokes <- struct{}{}:
		default:
		}
		g.agents.Poked()
		g.agents.PeersChanged()
		g.reminders.Changed()
		g.transcribe.Poke()
	}
}

// wakes is where the gateway receives pokes.
func (g *gated) wakes() <-chan struct{} {
	if g.Leases == nil {
		return g.Wake.C()
	}
	return g.pokes
}

// problems shows operators why messages are not answered: in /readyz and, about agents, in
// gated's row of daemons, which the dashboard shows.
type problems struct {
	ready     *daemon.Readiness
	heartbeat *daemon.Heartbeat
}

// ofAgents replaces the reasons why agents are not started. It is called by one goroutine at a time.
func (p *problems) ofAgents(problems []string) {
	p.ready.Note("agents", problems...)
	state := daemon.Connected
	if len(problems) > 0 {
		state = daemon.Degraded
	}
	p.heartbeat.Report(state, strings.Join(problems, "; "))
}

// ofMessages replaces the daemons that messages wait for, whose own rows say more.
func (p *problems) ofMessages(waits []string) { p.ready.Note("messages", waits...) }

// ofReminders replaces the reminders that are overdue.
func (p *problems) ofReminders(overdue []string) { p.ready.Note("reminders", overdue...) }
