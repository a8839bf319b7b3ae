package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// minPause is the shortest pause between messages. The longest is twice as long: pauses are random, so
// that periodic work of the daemons does not keep step with the messages.
const minPause = 5 * time.Millisecond

// latency measures one message at a time with warm agents, alternating between arizuko and the floor.
func (b *bench) latency(ctx context.Context) ([]figure, error) {
	arizuko, err := b.newArizuko(ctx, 1, 5)
	if err != nil {
		return nil, err
	}
	systems := []*system{arizuko}
	if b.floors {
		floor, err := b.newFloor(ctx)
		if err != nil {
			return nil, err
		}
		systems = append(systems, floor)
	}

	got, err := askAlternately(ctx, b.pick(2000, 30), systems...)
	if err != nil {
		return nil, err
	}
	afterPause, afterAnswer, err := askInPairs(ctx, b.pick(1000, 15), arizuko)
	if err != nil {
		return nil, err
	}

	a := got[0]
	var f samples // of the floor
	if b.floors {
		f = got[1]
	}
	toAgent, toReply := percentile(50, a.toAgent), percentile(50, a.toReply)
	first, next := percentile(50, afterPause.toReply), percentile(50, afterAnswer.toReply)
	return []figure{
		{name: "inbound commit → agent stdin, p50", unit: "ms", ratio: 4.5, measured: toAgent, compared: toAgent,
			floor: percentile(50, f.toAgent)},
		{name: "inbound commit → agent stdin, p99", unit: "ms", ratio: 9, measured: percentile(99, a.toAgent),
			floor: percentile(99, f.toAgent)},
		{name: "inbound commit → outbound row, p50", unit: "ms", ratio: 2.3, measured: toReply, compared: toReply,
			floor: percentile(50, f.toReply)},
		{name: "inbound commit → outbound row, p99", unit: "ms", ratio: 5, measured: percentile(99, a.toReply),
			floor: percentile(99, f.toReply)},
		{name: "message after a pause → outbound row, p50", unit: "ms", measured: first, compared: first},
		{name: "message right after an answer → outbound row, p50", note: "floor: after a pause", unit: "ms",
			ratio:    1.05,
			measured: next, floor: first, compared: next},
	}, nil
}

// samples are the samples of many messages.
type samples struct {
	all              []sample
	toAgent, toReply []time.Duration
}

func (all *samples) add(s sample) {
	all.all = append(all.all, s)
	all.toAgent = append(all.toAgent, s.toAgent)
	all.toReply = append(all.toReply, s.toReply)
}

// blockSize is how many messages one system gets in a row before the next system does.
const blockSize = 50

// askAlternately asks the first chat of each system at least n times, in alternating blocks, so that all
// see the same machine. The first answers of a block don't count: they start the agent or fill the CPU's
// caches.
func askAlternately(ctx context.Context, n int, systems ...*system) ([]samples, error) {
	const warmUp = 5
	all := make([]samples, len(systems))
	for done := 0; done < n; done += blockSize {
		for k, s := range systems {
			for i := range warmUp + min(blockSize, n) {
				if err := pause(ctx); err != nil {
					return nil, err
				}
				got, err := s.adapter.ask(ctx, 0)
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

// askInPairs asks n times after a pause, and each time once more as soon as the answer has arrived.
func askInPairs(ctx context.Context, n int, s *system) (first, next samples, err error) {
	for range n {
		if err := pause(ctx); err != nil {
			return first, next, err
		}
		for _, kind := range []*samples{&first, &next} {
			got, err := s.adapter.ask(ctx, 0)
			if err != nil {
				return first, next, err
			}
			kind.add(got)
		}
	}
	return first, next, nil
}

func pause(ctx context.Context) error { return wait(ctx, minPause+rand.N(minPause)) }
