package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/gated/gatedtest"
	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// liveTurns is how many turns are at work beside a flood: as many as there are agents by default, twice.
	liveTurns = 10
	// progressEvery is how often the progress of each is stored: as often as gated does it.
	progressEvery = 250 * time.Millisecond
)

// measureFloodBesideTurns is measureFlood while users see the progress of turns in other chats.
func (s *adapterSystem) measureFloodBesideTurns(ctx context.Context, rows, many int) (took time.Duration, err error) {
	l, err := s.beginTurns(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.end(context.WithoutCancel(ctx))) }()
	if err := l.awaitShown(ctx); err != nil {
		return 0, err
	}
	return s.measureFlood(ctx, rows, many)
}

// live measures turns in which an agent reports its work. This program stands in for gated.
type live struct {
	system *adapterSystem
	turns  []*msg.Turn
	runs   []msg.Run
	stop   context.CancelFunc
	done   chan error
}

// beginTurns begins turns in chats of their own, and stores their progress until end is called.
func (s *adapterSystem) beginTurns(ctx context.Context) (*live, error) {
	l := &live{system: s, done: make(chan error, 1)}
	err := s.gated.store.Write(ctx, func(tx *store.Tx) error {
		for i, chat := range s.allDMs()[:liveTurns] {
			if err := l.begin(tx, i, chat); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ctx, l.stop = context.WithCancel(ctx)
	go func() { l.done <- l.work(ctx) }()
	return l, nil
}

func (l *live) begin(tx *store.Tx, n int, chat string) error {
	now := time.Now().UnixMilli()
	question := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "do this", Timestamp: now, ReceivedAt: now}
	if _, _, err := tx.PutMessage(question); err != nil {
		return err
	}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: groupFolder(n), ChatJID: chat, Surface: "dm", Ceiling: 4000,
		TriggerMessageID: question.ID, CreatedAt: now}
	if _, err := gatedtest.PutTurn(tx, turn, liveTurns); err != nil {
		return err
	}
	d := store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: turn.Folder, TurnID: turn.ID}
	if err := tx.Decide(question.ID, d, now); err != nil {
		return err
	}
	run := msg.Run{Folder: turn.Folder, ChatJID: chat, Runtime: "process", StartedAt: now}
	if err := gatedtest.StartRun(tx, &run, turn.ID); err != nil {
		return err
	}
	l.turns, l.runs = append(l.turns, turn), append(l.runs, run)
	return nil
}

// work stores the progress of all turns, with a text that grows, until ctx ends.
func (l *live) work(ctx context.Context) error {
	ticks := time.NewTicker(progressEvery)
	defer ticks.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		p := store.Progress{
			State: agentproto.StatusRunning, Text: strings.Repeat("some more words ", min(n, 200)),
			UpdatedAt: time.Now().UnixMilli(),
			Tools: []agentproto.Tool{{ID: "1", Title: fmt.Sprintf("Read file-%d.go", n),
				Status: agentproto.ToolRunning}},
		}
		err := l.system.gated.store.Write(ctx, func(tx *store.Tx) error {
			for i, t := range l.turns {
				if err := gatedtest.PutProgress(tx, l.runs[i], t.ID, &p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// awaitShown waits until users see something of each turn.
func (l *live) awaitShown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return harness.Await(ctx, "the progress of turns to be shown", func() (bool, error) {
		n, err := l.shown(ctx)
		return n >= liveTurns, err
	})
}

// shown is how many of the turns users see something of.
func (l *live) shown(ctx context.Context) (n int, err error) {
	all, err := adapterrows.Previews(ctx, l.system.gated.store.Reader, l.system.platform.Info().Platform)
	for _, p := range all {
		if p.PlatformID != "" {
			n++
		}
	}
	return n, err
}

// end ends the turns, which takes their previews away.
func (l *live) end(ctx context.Context) error {
	l.stop()
	err := <-l.done
	return errors.Join(err, l.system.gated.store.Write(ctx, func(tx *store.Tx) error {
		for i, t := range l.turns {
			now := time.Now().UnixMilli()
			if err := gatedtest.FinishTurn(tx, t, msg.TurnDone, msg.ReasonSilent, "", now); err != nil {
				return err
			}
			if err := gatedtest.CloseRun(tx, l.runs[i].ID, now); err != nil {
				return err
			}
			if err := gatedtest.EndRun(tx, l.runs[i].ID, "", now); err != nil {
				return err
			}
		}
		return nil
	}))
}
