package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/wake"
)

// answerMost is how long an answer may take before the bench gives up.
const answerMost = 60 * time.Second

// adapter stands in for teled: it inserts what people write and sees the
// answers, and does nothing else.
type adapter struct {
	st     *store.Store
	poker  *wake.Poker
	wake   *wake.Listener
	commit atomic.Int64 // when the last commit that has a reader was done, unix ns
	count  atomic.Int64 // of messages made
}

func openAdapter(ctx context.Context, data config.Base) (a *adapter, err error) {
	a = &adapter{poker: wake.NewPoker(data.RunDir(), func(string, error) {})}
	if a.wake, err = wake.Listen(data.RunDir(), msg.DaemonOf(chatJID(0))); err != nil {
		return nil, err
	}
	a.st, err = store.Open(ctx, store.Options{
		Path: data.DBPath(), Autocheckpoint: store.DefaultAutocheckpoint,
		Poke: func(daemon string) {
			a.commit.Store(time.Now().UnixNano())
			a.poker.Poke(daemon)
		},
	})
	return a, err
}

func (a *adapter) close() error {
	a.poker.Close()
	return errors.Join(a.wake.Close(), a.st.Close())
}

// message is a new message in the nth chat.
func (a *adapter) message(chat int) *msg.Message {
	now, n := time.Now().UnixMilli(), a.count.Add(1)
	return &msg.Message{
		ChatJID: chatJID(chat), PlatformID: fmt.Sprint(n), Direction: msg.In, Sender: "telegram:7", SenderName: "Alice",
		Content: fmt.Sprintf("message %d, about as long as what people write in a chat", n), Timestamp: now, ReceivedAt: now,
		Source: "teled",
	}
}

// sample is how long one message took, from its commit.
type sample struct {
	toAgent time.Duration // until the agent had read it
	toReply time.Duration // until the adapter had read the committed answer
}

// ask sends one message to the nth chat, in which nothing else goes on, and
// waits for the answer.
func (a *adapter) ask(ctx context.Context, chat int) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	id, _, err := a.st.PutMessage(ctx, a.message(chat))
	if err != nil {
		return s, err
	}
	for {
		// Nobody else writes messages, so the answer is the next row.
		reply, err := a.st.Message(ctx, id+1)
		if err != nil {
			return s, err
		}
		if reply != nil {
			seen := time.Now().UnixNano()
			received, _, err := parseAnswer(reply.Content)
			committed := a.commit.Load()
			return sample{time.Duration(received - committed), time.Duration(seen - committed)}, err
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("no answer to message %d: %w", id, ctx.Err())
		case <-a.wake.C():
		}
	}
}

// parseAnswer takes an agent's answer apart: when it had the line, in unix
// ns, and how many messages that held.
func parseAnswer(content string) (received int64, messages int, err error) {
	if _, err := fmt.Sscanf(content, "%d %d", &received, &messages); err != nil {
		return 0, 0, fmt.Errorf("not an answer of the bench agent: %q", content)
	}
	return received, messages, nil
}
