package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// spacing between messages, at least; at most twice as much, by chance, so
// that nothing that happens at intervals keeps step with the messages.
const spacing = 5 * time.Millisecond

// latency measures one message at a time with warm agents, in arizuko and the
// floor by turns.
func (b *bench) latency(ctx context.Context) ([]line, error) {
	real, err := b.arizuko(ctx, 1, 5)
	if err != nil {
		return nil, err
	}
	floor, err := b.floorProgram(ctx)
	if err != nil {
		return nil, err
	}
	got, err := askByTurns(ctx, b.pick(2000, 30), real, floor)
	if err != nil {
		return nil, err
	}
	first, next, err := askTwice(ctx, b.pick(1000, 15), real)
	if err != nil {
		return nil, err
	}
	g, f := got[0], got[1]
	return []line{
		{what: "inbound commit → agent stdin, p50", unit: "ms", budget: 1.5,
			measured: percentile(50, g.toAgent), floor: percentile(50, f.toAgent)},
		{what: "inbound commit → agent stdin, p99", unit: "ms", budget: 10,
			measured: percentile(99, g.toAgent), floor: percentile(99, f.toAgent)},
		{what: "inbound commit → outbound row, p50", unit: "ms", budget: 2.5,
			measured: percentile(50, g.toReply), floor: percentile(50, f.toReply)},
		{what: "inbound commit → outbound row, p99", unit: "ms",
			measured: percentile(99, g.toReply), floor: percentile(99, f.toReply)},
		{what: "a message after a pause → outbound row, p50", unit: "ms", measured: percentile(50, first.toReply)},
		{what: "a message as the previous reply lands → outbound row, p50", unit: "ms",
			note: "no longer than after a pause, give or take 5 %", measured: percentile(50, next.toReply),
			budget: 1.05 * percentile(50, first.toReply)},
	}, nil
}

// samples are many of one kind.
type samples struct{ toAgent, toReply []time.Duration }

func (all *samples) add(s sample) {
	all.toAgent = append(all.toAgent, s.toAgent)
	all.toReply = append(all.toReply, s.toReply)
}

// block is how many messages in a row one system gets before it is the next
// one's turn.
const block = 50

// askByTurns asks the first chat of each system n times or a little more, in
// blocks by turns, so that all see the same machine. The first answers of a
// block, which start the agent or fetch the system's memory back into the
// processor's caches, don't count.
func askByTurns(ctx context.Context, n int, systems ...*system) ([]samples, error) {
	const warmUp = 5
	all := make([]samples, len(systems))
	for done := 0; done < n; done += block {
		for k, s := range systems {
			for i := range warmUp + min(block, n) {
				if err := pause(ctx); err != nil {
					return nil, err
				}
				got, err := s.ask(ctx, 0)
				if err != nil {
					return nil, err
				}
				if i >= warmUp {
					all[k].add(got)
				}
			}
		}
	}
	return all, nil
}

// askTwice asks n times after a pause, and each time again as soon as the
// answer is there.
func askTwice(ctx context.Context, n int, s *system) (first, next samples, err error) {
	for range n {
		if err := pause(ctx); err != nil {
			return first, next, err
		}
		for _, kind := range []*samples{&first, &next} {
			got, err := s.ask(ctx, 0)
			if err != nil {
				return first, next, err
			}
			kind.add(got)
		}
	}
	return first, next, nil
}

func pause(ctx context.Context) error { return wait(ctx, spacing+rand.N(spacing)) }
