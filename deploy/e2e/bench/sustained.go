package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const (
	// inserters write concurrently, each up to insertBatch messages at once: as many as Telegram delivers to an
	// adapter in one response.
	inserters   = 4
	insertBatch = 100
	// manyPending is the mean number of unanswered messages per chat under most loads. More would give turns
	// more messages, and better figures, than real load does. With onePending each message is a turn of its own:
	// queued turns take in further messages, so that the number of turns says nothing where many wait.
	manyPending, onePending = 20, 1
)

// load is a load that is sustained.
type load struct {
	chats, agents, messages int
	pending                 int     // messages per chat that may be unanswered
	minMessages, minTurns   float64 // ratios to the floor, 0: none
}

func (b *bench) loads() []load {
	const defaultAgents = 5
	few, many := b.pick(50, 5), b.pick(500, 20)
	return []load{
		{few, few, b.pick(100_000, 500), manyPending, 0.5, 0},
		{many, many, b.pick(150_000, 1000), manyPending, 0.9, 0},
		{many, many, b.pick(50_000, 500), onePending, 0, 0.4},
		{b.pick(50, 10), defaultAgents, b.pick(10_000, 200), manyPending, 0, 0},
	}
}

func (l load) String() string {
	name := fmt.Sprintf("sustained, %d groups, %d agents", l.chats, l.agents)
	if l.pending == onePending {
		name += ", one message waiting"
	}
	return name
}

// sustained measures how many messages per second are answered while many wait: with an agent for each
// folder, and with the default number of agents, where folders share them and almost every turn starts a
// process.
func (b *bench) sustained(ctx context.Context) (figures []figure, err error) {
	for _, l := range b.loads() {
		got, err := b.measureRates(ctx, l, func() (*system, error) { return b.newArizuko(ctx, l.chats, l.agents) })
		if err != nil {
			return nil, err
		}
		var floor rates
		if b.floors && l.chats == l.agents { // the floor has no limit of agents
			floor, err = b.measureRates(ctx, l, func() (*system, error) { return b.newFloor(ctx) })
			if err != nil {
				return nil, err
			}
		}
		figures = append(figures,
			figure{name: l.String() + ": messages", unit: "msg/s", ratio: l.minMessages, more: true,
				measured: got.messages, floor: floor.messages,
				compared: got.messages},
			figure{name: l.String() + ": turns", unit: "/s", ratio: l.minTurns, more: true, measured: got.turns,
				floor: floor.turns},
			figure{name: l.String() + ": CPU of gated", unit: "cores", measured: got.cores["gated"],
				floor:    floor.cores["floor"],
				compared: got.cpuPerMessage("gated"), comparedUnit: "µs/msg"},
			figure{name: l.String() + ": CPU of routd", unit: "cores", measured: got.cores["routd"],
				compared: got.cpuPerMessage("routd"), comparedUnit: "µs/msg"})
	}
	return figures, nil
}

// rates are per second, from the first message to the last answer.
type rates struct {
	messages, turns float64
	seconds         float64            // how long that took
	cores           map[string]float64 // by daemon
}

// cpuPerMessage returns a daemon's CPU time per message in µs.
func (r rates) cpuPerMessage(daemon string) float64 { return 1e6 * r.cores[daemon] / r.messages }

// measureRates measures a new system. It first sends one message per chat, which starts the agents.
func (b *bench) measureRates(ctx context.Context, l load, start func() (*system, error)) (r rates, err error) {
	s, err := start()
	if err != nil {
		return r, err
	}
	if _, err := s.answerAll(ctx, load{chats: l.chats, messages: l.chats, pending: l.pending}); err != nil {
		return r, err
	}
	before, err := s.cpu()
	if err != nil {
		return r, err
	}
	began := time.Now()
	turns, err := s.answerAll(ctx, l)
	if err != nil {
		return r, err
	}
	took := time.Since(began).Seconds()
	after, err := s.cpu()
	if err != nil {
		return r, err
	}
	r = rates{float64(l.messages) / took, float64(turns) / took, took, map[string]float64{}}
	for name := range after {
		r.cores[name] = (after[name] - before[name]).Seconds() / took
	}
	return r, errors.Join(s.checkDone(ctx), b.stopSystems())
}

// checkDone returns an error if there is open work.
func (s *system) checkDone(ctx context.Context) error {
	if s.isFloor {
		return nil
	}
	waiting, err := gatedtest.UndecidedChats(ctx, s.adapter.store.Reader)
	if err != nil {
		return err
	}
	open, err := storetest.OpenTurns(ctx, s.adapter.store.Reader)
	if err == nil && len(waiting)+len(open) > 0 {
		err = fmt.Errorf("all messages are answered, but %d chats have undecided rows and %d turns are open",
			len(waiting), len(open))
	}
	return err
}

// stream is a number of messages sent through a system.
type stream struct {
	adapter      *fakeDaemon
	chats, total int
	pending      *semaphore.Weighted // messages that may be unanswered
	batch        int                 // messages of one insert

	next     atomic.Int64 // the message to insert next
	inserted atomic.Int64
}

// answerAll sends messages to all chats round robin, waits until all are answered, and returns in how
// many turns they were.
func (s *system) answerAll(ctx context.Context, l load) (turns int, err error) {
	last, err := s.adapter.store.LastMessageID(ctx)
	if err != nil {
		return 0, err
	}
	floor := &store.Floor{At: last} // nothing runs
	st := &stream{adapter: s.adapter, chats: l.chats, total: l.messages,
		pending: semaphore.NewWeighted(int64(l.pending * l.chats)),
		batch:   max(min(insertBatch, l.pending*l.chats/inserters), 1)}
	group, ctx := errgroup.WithContext(ctx)
	for range inserters {
		group.Go(func() error { return st.insert(ctx) })
	}
	group.Go(func() (err error) {
		turns, err = st.collect(ctx, floor)
		return err
	})
	return turns, group.Wait()
}

func (st *stream) insert(ctx context.Context) error {
	for {
		first := int(st.next.Add(int64(st.batch))) - st.batch
		n := min(st.batch, st.total-first)
		if n <= 0 {
			return nil
		}
		if err := st.pending.Acquire(ctx, int64(n)); err != nil {
			return err
		}
		batch, scope := make([]*msg.Message, n), make(store.Scope, n)
		for i := range batch {
			batch[i] = st.adapter.message((first + i) % st.chats)
			scope[i] = batch[i].ChatJID
		}
		st.inserted.Add(int64(n))
		err := st.adapter.store.WriteIn(ctx, scope, func(tx *store.Tx) error {
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
	}
}

// collect reads the answers in the rows after the floor.
func (st *stream) collect(ctx context.Context, floor *store.Floor) (turns int, err error) {
	for answered := 0; answered < st.total; {
		n, messages, err := st.answers(ctx, floor)
		if err != nil {
			return turns, err
		}
		if turns, answered = turns+n, answered+messages; int64(answered) > st.inserted.Load() {
			return turns, fmt.Errorf("%d messages answered, but only %d sent", answered, st.inserted.Load())
		}
		st.pending.Release(int64(messages))
		if n > 0 {
			continue
		}
		if err := st.awaitPoke(ctx, answered); err != nil {
			return turns, err
		}
	}
	return turns, nil
}

// answers reads the new answers, and returns how many messages they are for.
func (st *stream) answers(ctx context.Context, floor *store.Floor) (answers, messages int, err error) {
	texts, err := storetest.NewOutbound(ctx, st.adapter.store.Reader, floor)
	for _, text := range texts {
		_, n, err := parseAnswer(text)
		if err != nil {
			return 0, 0, err
		}
		if n > 0 {
			answers, messages = answers+1, messages+n
		}
	}
	return answers, messages, err
}

// awaitPoke waits for the next poke, unless all messages are answered.
func (st *stream) awaitPoke(ctx context.Context, answered int) error {
	if answered == st.total {
		return nil
	}
	timer := time.NewTimer(answerTimeout)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-st.adapter.wake.C():
		return nil
	case <-timer.C:
		return fmt.Errorf("no answer for %s: %d of %d messages are answered", answerTimeout, answered, st.total)
	}
}
