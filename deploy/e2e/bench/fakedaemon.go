package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/config"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/wake"
)

// answerTimeout is when the bench gives up waiting for an answer.
const answerTimeout = 60 * time.Second

// fakeDaemon is this program in the place of a daemon: of teled, whose messages it inserts and whose answers it
// reads, or of gated beside a real adapter.
type fakeDaemon struct {
	store  *store.Store
	poker  *wake.Poker // of the daemons on a file
	wake   listener
	commit atomic.Int64 // time of the last commit that poked a daemon, unix ns
	count  atomic.Int64 // of messages so far
}

// listener receives the pokes of other daemons.
type listener interface {
	C() <-chan struct{}
	Close() error
}

// openAs opens the database of an instance in the place of a daemon.
func openAs(ctx context.Context, daemon string, i *harness.Instance) (a *fakeDaemon, err error) {
	runDir := config.Base{Data: i.Data}.RunDir()
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return nil, err
	}
	a = &fakeDaemon{poker: wake.NewPoker(runDir, func(string, error) {})}
	poke := a.poker.Poke
	if store.IsServer(i.Database()) {
		poke = func(string) {} // the transaction does
		a.wake, err = store.ListenForPokes(i.Database(), daemon, func(error) {})
	} else {
		a.wake, err = wake.Listen(runDir, daemon)
	}
	if err != nil {
		return nil, err
	}
	a.store, err = store.Open(ctx, store.Options{
		Path: i.Database(), Autocheckpoint: store.DefaultAutocheckpoint,
		Poke: func(daemon string) {
			a.commit.Store(time.Now().UnixNano())
			poke(daemon)
		},
	})
	return a, err
}

func (a *fakeDaemon) close() error {
	a.poker.Close()
	return errors.Join(a.wake.Close(), a.store.Close())
}

// message returns a new message in the nth chat.
func (a *fakeDaemon) message(chat int) *msg.Message {
	now, n := time.Now().UnixMilli(), a.count.Add(1)
	return &msg.Message{
		ChatJID: chatJID(chat), PlatformID: fmt.Sprint(n), Direction: msg.In, Sender: "telegram:7", SenderName: "Alice",
		Content: fmt.Sprintf("message %d, about as long as most messages in a chat are", n), Timestamp: now,
		ReceivedAt: now,
		Source:     "teled",
	}
}

// sample is the time that one message took from its commit.
type sample struct {
	commit  int64         // when it was committed, unix ns
	toAgent time.Duration // until the agent had read it
	toReply time.Duration // until the adapter had read the answer's row
}

// ask sends one message to the nth chat and waits for the answer. Nothing else may happen meanwhile.
func (a *fakeDaemon) ask(ctx context.Context, chat int) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	id, _, err := storetest.Put(ctx, a.store, a.message(chat))
	if err != nil {
		return s, err
	}
	for {
		// There are no other messages, so the answer is the next row.
		reply, err := a.store.Message(ctx, id+1)
		if err != nil {
			return s, err
		}
		if reply != nil {
			seen := time.Now().UnixNano()
			received, _, err := parseAnswer(reply.Content)
			committed := a.commit.Load()
			return sample{committed, time.Duration(received - committed), time.Duration(seen - committed)}, err
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("no answer to message %d: %w", id, ctx.Err())
		case <-a.wake.C():
		}
	}
}

// parseAnswer parses an answer of the bench agent: when it had read the line, in unix ns, and how many
// messages the line had.
func parseAnswer(content string) (received int64, messages int, err error) {
	if _, err := fmt.Sscanf(content, "%d %d", &received, &messages); err != nil {
		return 0, 0, fmt.Errorf("not an answer of the bench agent: %q", content)
	}
	return received, messages, nil
}
