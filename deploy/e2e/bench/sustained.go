package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// inserters write at the same time, insertBatch messages each: as many as
	// Telegram hands to an adapter at once.
	inserters   = 4
	insertBatch = 100
	// aheadPerChat is how many messages of a chat wait unanswered on average:
	// more of them per turn would make the numbers finer than life is.
	aheadPerChat = 20
)

// sustained measures how many messages a second are answered for good while
// as many wait: with an agent for every folder, and, for information, with as
// few as may work at once by default, where folders take turns at them and
// almost every turn starts a process.
func (b *bench) sustained(ctx context.Context) (lines []line, err error) {
	const fewAgents = 5
	for _, load := range []struct {
		chats, agents, messages int
		atLeast                 float64
	}{
		{b.pick(50, 5), b.pick(50, 5), b.pick(100_000, 500), 3000},
		{b.pick(500, 20), b.pick(500, 20), b.pick(150_000, 1000), 5000},
		{b.pick(50, 10), fewAgents, b.pick(10_000, 200), 0},
	} {
		real, err := b.flood(ctx, load.messages, load.chats, func() (*system, error) {
			return b.arizuko(ctx, load.chats, load.agents)
		})
		if err != nil {
			return nil, err
		}
		var floor rates // it knows no limit of agents
		if load.chats == load.agents {
			floor, err = b.flood(ctx, load.messages, load.chats, func() (*system, error) { return b.floorProgram(ctx) })
			if err != nil {
				return nil, err
			}
		}
		what := fmt.Sprintf("sustained over %d folders with MAX_AGENTS=%d", load.chats, load.agents)
		lines = append(lines,
			line{what: what, unit: "msg/s", budget: load.atLeast, atLeast: true, measured: real.messages, floor: floor.messages},
			line{what: "… turns", unit: "/s", measured: real.turns, floor: floor.turns},
			line{what: "… CPU of gated", unit: "cores", measured: real.cores["gated"], floor: floor.cores["floor"]},
			line{what: "… CPU of routd", unit: "cores", measured: real.cores["routd"]})
	}
	return lines, nil
}

// rates are per second of a flood, from the first message to the last answer.
type rates struct {
	messages, turns float64
	cores           map[string]float64 // by daemon
}

// flood measures a system of its own. One message per chat goes ahead, so
// that all agents are there.
func (b *bench) flood(ctx context.Context, messages, chats int, start func() (*system, error)) (r rates, err error) {
	s, err := start()
	if err != nil {
		return r, err
	}
	if _, err := s.pour(ctx, chats, chats); err != nil {
		return r, err
	}
	before, err := s.cpu()
	if err != nil {
		return r, err
	}
	began := time.Now()
	turns, err := s.pour(ctx, messages, chats)
	if err != nil {
		return r, err
	}
	took := time.Since(began).Seconds()
	after, err := s.cpu()
	if err != nil {
		return r, err
	}
	r = rates{float64(messages) / took, float64(turns) / took, map[string]float64{}}
	for name := range after {
		r.cores[name] = (after[name] - before[name]).Seconds() / took
	}
	return r, errors.Join(s.settled(ctx), b.stop())
}

// settled makes sure that nothing is left to do.
func (s *system) settled(ctx context.Context) error {
	if s.floor {
		return nil
	}
	waiting, err := s.st.UndecidedChats(ctx)
	if err != nil {
		return err
	}
	open, err := s.st.OpenTurns(ctx)
	if err == nil && len(waiting)+len(open) > 0 {
		err = fmt.Errorf("everything is answered, but %d chats wait and %d turns are open", len(waiting), len(open))
	}
	return err
}

// stream is a number of messages on their way through a system.
type stream struct {
	*system
	chats, total int
	ahead        *semaphore.Weighted // messages that may wait for their answer

	next     atomic.Int64 // message to insert
	inserted atomic.Int64
	mu       sync.Mutex
	own      map[int64]int64 // first → last row of each insert
}

// pour sends messages through all chats by turns and returns in how many
// turns they were answered. It ends when all are.
func (s *system) pour(ctx context.Context, messages, chats int) (turns int, err error) {
	last, err := s.st.LastMessageID(ctx)
	if err != nil {
		return 0, err
	}
	f := &stream{system: s, chats: chats, total: messages, own: map[int64]int64{},
		ahead: semaphore.NewWeighted(int64(aheadPerChat * chats))}
	group, ctx := errgroup.WithContext(ctx)
	for range inserters {
		group.Go(func() error { return f.insert(ctx) })
	}
	group.Go(func() (err error) {
		turns, err = f.collect(ctx, last)
		return err
	})
	return turns, group.Wait()
}

func (f *stream) insert(ctx context.Context) error {
	for {
		first := int(f.next.Add(insertBatch)) - insertBatch
		n := min(insertBatch, f.total-first)
		if n <= 0 {
			return nil
		}
		if err := f.ahead.Acquire(ctx, int64(n)); err != nil {
			return err
		}
		batch := make([]*msg.Message, n)
		for i := range batch {
			batch[i] = f.message((first + i) % f.chats)
		}
		f.inserted.Add(int64(n))
		err := f.st.Write(ctx, func(tx *store.Tx) error {
			for _, m := range batch {
				if _, _, err := tx.PutMessage(m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.own[batch[0].ID] = batch[n-1].ID
		f.mu.Unlock()
	}
}

// collect counts the answers in the rows behind last.
func (f *stream) collect(ctx context.Context, last int64) (turns int, err error) {
	for answered := 0; answered < f.total; {
		newest, err := f.st.LastMessageID(ctx)
		if err != nil {
			return turns, err
		}
		for last < newest {
			last++
			if end := f.skip(last); end != 0 {
				last = end
				continue
			}
			n, err := f.answer(ctx, last)
			if err != nil {
				return turns, err
			}
			if n == 0 {
				continue
			}
			turns++
			if answered += n; int64(answered) > f.inserted.Load() {
				return turns, fmt.Errorf("%d messages answered, %d sent", answered, f.inserted.Load())
			}
			f.ahead.Release(int64(n))
		}
		if err := f.await(ctx, answered); err != nil {
			return turns, err
		}
	}
	return turns, nil
}

// await returns at the next poke, at once if all is answered.
func (f *stream) await(ctx context.Context, answered int) error {
	if answered == f.total {
		return nil
	}
	timer := time.NewTimer(answerMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.wake.C():
		return nil
	case <-timer.C:
		return fmt.Errorf("no answer for %s; %d of %d messages are answered", answerMost, answered, f.total)
	}
}

// skip returns the end of an insert of ours, 0 if none is known to begin at
// the row.
func (f *stream) skip(row int64) (end int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end = f.own[row]
	delete(f.own, row)
	return end
}

// answer is how many messages a row answers, 0 if it is none.
func (f *stream) answer(ctx context.Context, row int64) (messages int, err error) {
	m, err := f.st.Message(ctx, row)
	if err != nil || m == nil || m.Direction != msg.Out {
		return 0, err
	}
	_, messages, err = parseAnswer(m.Content)
	return messages, err
}
