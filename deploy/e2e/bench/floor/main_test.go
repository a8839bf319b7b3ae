package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/gobuild"
	"arizuko/pkg/wake"
)

func TestFloor_AnswersNewRows(t *testing.T) {
	agent := gobuild.Program(t, gobuild.Options{}, "arizuko/deploy/e2e/bench/agent")
	db := storetest.Path(t)
	data := filepath.Dir(db)
	runDir := filepath.Join(data, "run")
	if err := os.Mkdir(runDir, 0o700); err != nil {
		t.Fatal(err)
	}
	poker := wake.NewPoker(runDir, func(string, error) {})
	t.Cleanup(poker.Close)
	st, err := store.Open(t.Context(), store.Options{Path: db, Poke: poker.Poke})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	answers, err := wake.Listen(runDir, "teled")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answers.Close() })
	put(t, st, "telegram:1", "before the start: not answered")

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, data, agent) }()
	awaitFile(t, filepath.Join(runDir, "gated.sock"))
	for _, jid := range []string{"telegram:1", "telegram:2", "telegram:1"} {
		id := put(t, st, jid, "hello")
		if m := awaitRow(t, st, answers, id+1); m.Direction != msg.Out || m.ChatJID != jid || m.OutState != msg.OutQueued {
			t.Errorf("answer in %s: %+v", jid, m)
		}
	}
	stop()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("stopped with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("not stopped after 30 s")
	}
	if last, err := st.LastMessageID(t.Context()); err != nil || last != 7 {
		t.Errorf("%d rows, error %v, want 4 messages and 3 answers", last, err)
	}
}

func put(t *testing.T, st *store.Store, jid, text string) int64 {
	t.Helper()
	id, _, err := st.PutMessage(t.Context(), &msg.Message{ChatJID: jid, Direction: msg.In, Content: text, Timestamp: 1, ReceivedAt: 1})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func awaitRow(t *testing.T, st *store.Store, poked *wake.Listener, id int64) *msg.Message {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		m, err := st.Message(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if m != nil {
			return m
		}
		select {
		case <-poked.C():
		case <-deadline:
			t.Fatalf("no row %d", id)
		}
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("no %s", path)
		}
	}
}
