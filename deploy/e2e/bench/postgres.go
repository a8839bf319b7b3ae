package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/postgres"
)

// slowCall is how much later each call reaches a server that is far from the daemons.
const slowCall = 5 * time.Millisecond

// newDatabase makes a database on the server, which it starts first if none runs: with every commit on the disk, as in
// use.
func (b *bench) newDatabase(ctx context.Context) (url string, err error) {
	if b.server == nil {
		if err := os.Chmod(b.dir, 0o711); err != nil { // the server runs as another user
			return "", err
		}
		if b.server, err = postgres.Start(ctx, b.dir, "fsync=on"); err != nil {
			return "", err
		}
	}
	b.databases++
	return b.server.CreateDatabase(ctx, "bench"+strconv.Itoa(b.databases))
}

func (b *bench) stopServer() error {
	if b.server == nil {
		return nil
	}
	return b.server.Stop()
}

// newMachines starts routd and gated on a new database of the server, and gated alone on so many further machines. Each
// call to the server is delayed.
func (b *bench) newMachines(ctx context.Context, peers, chats, maxAgents int, delay time.Duration) (*system, error) {
	database, err := b.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	s, err := b.newSystemOn(ctx, database)
	if err != nil {
		return nil, err
	}
	if delay > 0 { // the adapter is near the server: only the daemons are measured
		if s.proxy, err = storetest.NewProxy(database); err != nil {
			return nil, err
		}
		s.instance.UseDatabase(s.proxy.URL())
	}
	if err := s.serve(ctx, chats, maxAgents); err != nil {
		return nil, err
	}
	for n := range peers {
		if err := s.addMachine(ctx, b, n+2, maxAgents); err != nil {
			return nil, err
		}
	}
	if err := s.awaitDivided(ctx); err != nil {
		return nil, err
	}
	if s.proxy != nil {
		s.proxy.Delay(delay)
	}
	return s, nil
}

// awaitDivided waits until each gated decides its part of the chats: until then, all agents would start on one machine.
func (s *system) awaitDivided(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return harness.Await(ctx, "each gated to have its part of the chats", func() (bool, error) {
		all, err := rows.Processes(ctx, s.adapter.store.Reader)
		var parts []int
		for _, p := range all {
			if p.Daemon == "gated" {
				parts = append(parts, strings.Count(p.Holds, "gated/")-1) // one lease says that it takes part
			}
		}
		return len(parts) > len(s.peers) && slices.Min(parts) > 0 && slices.Max(parts)-slices.Min(parts) <= 1, err
	})
}

// addMachine starts gated on one more machine.
func (s *system) addMachine(ctx context.Context, b *bench, number, maxAgents int) error {
	i, err := b.newInstance()
	if err != nil {
		return err
	}
	s.peers = append(s.peers, i)
	secret, err := s.instance.Secret()
	if err != nil {
		return err
	}
	i.UseDatabase(s.instance.Database())
	i.Env = append(i.Env, "ARIZUKO_HOST=machine"+strconv.Itoa(number), "ARIZUKO_SECRET="+secret,
		"AGENT_COMMAND=exec "+i.Program("agent"), "MAX_AGENTS="+strconv.Itoa(maxAgents))
	return startDaemons(ctx, i, "gated")
}

// postgres measures a server beside the file, in one run: one message at a time, and as many as go through with one
// gated and with two, near the server and far from it.
func (b *bench) postgres(ctx context.Context) (figures []figure, err error) {
	file, err := b.newArizuko(ctx, 1, 5)
	if err != nil {
		return nil, err
	}
	server, err := b.newMachines(ctx, 0, 1, 5, 0)
	if err != nil {
		return nil, err
	}
	got, err := askAlternately(ctx, b.pick(1000, 20), file, server)
	if err != nil {
		return nil, err
	}
	if err := b.stopSystems(); err != nil {
		return nil, err
	}
	for _, p := range []int{50, 99} {
		f := figure{name: fmt.Sprintf("Postgres: inbound commit → outbound row, p%d", p), note: "floor: the file",
			unit:     "ms",
			measured: percentile(p, got[1].toReply), floor: percentile(p, got[0].toReply)}
		if p == 50 {
			f.ratio = 2.5
		}
		figures = append(figures, f)
	}
	more, err := b.postgresRates(ctx)
	return append(figures, more...), err
}

func (b *bench) postgresRates(ctx context.Context) ([]figure, error) {
	folders := b.pick(50, 5)
	rate := func(messages, pending, peers int, delay time.Duration) (float64, error) {
		l := load{chats: folders, agents: folders, messages: messages, pending: pending}
		r, err := b.measureRates(ctx, l, func() (*system, error) {
			if peers < 0 {
				return b.newArizuko(ctx, folders, folders)
			}
			return b.newMachines(ctx, peers, folders, folders, delay)
		})
		return r.messages, err
	}
	const onFile = -1
	near, far := b.pick(30_000, 300), b.pick(3000, 100)
	file, err1 := rate(near, manyPending, onFile, 0)
	one, err2 := rate(near, manyPending, 0, 0)
	two, err3 := rate(near, manyPending, 1, 0)
	fileTurns, err4 := rate(near/3, onePending, onFile, 0)
	turns, err5 := rate(near/3, onePending, 0, 0)
	oneFar, err6 := rate(far, manyPending, 0, slowCall)
	twoFar, err7 := rate(far, manyPending, 1, slowCall)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("Postgres: sustained, %d groups", folders)
	slow := fmt.Sprintf("%s, calls %s slower", name, slowCall)
	return []figure{
		{name: name + ", one gated: messages", note: "floor: the file", unit: "msg/s", more: true, ratio: 0.5,
			measured: one, floor: file},
		{name: name + ", two gated: messages", note: "floor: one", unit: "msg/s", more: true, ratio: 0.9, measured: two,
			floor: one},
		{name: name + ", one gated, one message waiting: turns", note: "floor: the file", unit: "/s",
			more: true, measured: turns,
			floor: fileTurns},
		{name: slow + ", one gated: messages", unit: "msg/s", more: true, budget: 300, measured: oneFar},
		{name: slow + ", two gated: messages", note: "floor: one", unit: "msg/s", more: true, ratio: 1.5,
			measured: twoFar, floor: oneFar},
	}, nil
}
