package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// shownTurn is a kind of turns whose progress users see.
type shownTurn struct {
	name   string
	length time.Duration
	events int
	budget float64 // of the processor time with events ÷ without, 0: none
}

func (b *bench) shownTurns() []shownTurn {
	if b.quick {
		return []shownTurn{{"20 events in 2 s", 2 * time.Second, 20, 0}}
	}
	return []shownTurn{
		{"200 events in 30 s", 30 * time.Second, 200, 2},
		{"200 events in 5 s", 5 * time.Second, 200, 0},
	}
}

// progress measures the cost of agents' events: the processor time of gated and an adapter for a turn with events,
// against the same turn without. Users of all platforms ask at the same time, in a direct message each.
func (b *bench) progress(ctx context.Context) (figures []figure, err error) {
	s, err := b.newShownSystem(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range b.shownTurns() {
		if err := s.turns(ctx, 200*time.Millisecond, 0); err != nil { // agents and connections are there from then on
			return nil, err
		}
		var with, without []cpuTimes
		for range b.pick(5, 1) {
			for _, m := range []struct {
				events int
				to     *[]cpuTimes
			}{{0, &without}, {t.events, &with}} {
				used, err := s.measure(ctx, t.length, m.events)
				if err != nil {
					return nil, err
				}
				*m.to = append(*m.to, used)
			}
		}
		figures = append(figures, s.figures(t, with, without)...)
	}
	return figures, nil
}

// figures are the medians of the rounds.
func (s *shownSystem) figures(t shownTurn, with, without []cpuTimes) (figures []figure) {
	for _, p := range s.platforms {
		daemon := p.Info().Daemon
		more, less := medianSum(with, "gated", daemon), medianSum(without, "gated", daemon)
		figures = append(figures, figure{
			name: fmt.Sprintf("%s, %s: CPU ÷ without events", t.name, p.Info().Platform),
			note: fmt.Sprintf("%.3g ms ÷ %.3g ms", milliseconds(more), milliseconds(less)),
			unit: "×", budget: t.budget, measured: more.Seconds() / less.Seconds(),
		}, figure{
			name:   fmt.Sprintf("%s, %s: calls refused for their rate", t.name, p.Info().Platform),
			budget: none, measured: float64(p.RateLimited()),
		})
	}
	return figures
}

// medianSum is the median of the sums of some daemons.
func medianSum(rounds []cpuTimes, daemons ...string) time.Duration {
	sums := make([]time.Duration, len(rounds))
	for i, used := range rounds {
		for _, d := range daemons {
			sums[i] += used[d]
		}
	}
	slices.Sort(sums)
	return sums[len(sums)/2]
}

// shownSystem is routd, gated and the adapters of simulated platforms. A group answers one user's direct messages on
// each.
type shownSystem struct {
	*system
	users []chatsim.Conversation // by platform
	asked int
}

func (b *bench) newShownSystem(ctx context.Context) (*shownSystem, error) {
	var all []chatsim.Platform
	names := slices.Clone(arizukoDaemons)
	for _, p := range platforms() {
		all = append(all, p.make(5))
		names = append(names, all[len(all)-1].Info().Daemon)
	}
	base, err := b.newSystemAs(ctx, "", "", all...)
	if err != nil {
		return nil, err
	}
	s := &shownSystem{system: base}
	s.instance.Env = append(s.instance.Env, "AGENT_COMMAND=exec "+s.instance.Program("agent"))
	if err := startDaemons(ctx, s.instance, names...); err != nil {
		return nil, err
	}
	var chats []string
	for _, p := range all {
		user := p.Conversations()[0]
		s.users, chats = append(s.users, user), append(chats, user.Chat)
	}
	if err := s.createRoutes(ctx, chats); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return s, harness.Await(ctx, "the adapters to be connected", func() (bool, error) {
		return !slices.ContainsFunc(all, func(p chatsim.Platform) bool { return !p.Connected() }), nil
	})
}

// measure returns the processor time that each daemon uses for one turn on each platform, from the question until a
// moment after the answer.
func (s *shownSystem) measure(ctx context.Context, length time.Duration, events int) (used cpuTimes, err error) {
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	if err := s.turns(ctx, length, events); err != nil {
		return nil, err
	}
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	used = cpuTimes{}
	for name := range after {
		used[name] = after[name] - before[name]
	}
	// Of gated's time each platform's turn has its share.
	used["gated"] /= time.Duration(len(s.platforms))
	return used, nil
}

// turns has a turn on each platform, and waits for the answers and the work that follows them.
func (s *shownSystem) turns(ctx context.Context, length time.Duration, events int) error {
	s.asked++
	arrived := make([]int, len(s.platforms))
	for i, p := range s.platforms {
		arrived[i] = answers(p)
		text := fmt.Sprintf("message %d: work %gs events %d", s.asked, length.Seconds(), events)
		if _, err := p.Do(chatsim.Action{Conversation: s.users[i], Verb: msg.VerbMessage, Text: text}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, length+answerTimeout)
	defer cancel()
	err := harness.Await(ctx, "the answers", func() (bool, error) {
		for i, p := range s.platforms {
			if answers(p) <= arrived[i] {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return wait(ctx, time.Second)
}

// answers counts the answers that have arrived. The text of a preview, which grows, is none.
func answers(p chatsim.Platform) (n int) {
	for _, a := range p.Arrivals() {
		if _, _, err := parseAnswer(a.Text); err == nil {
			n++
		}
	}
	return n
}
