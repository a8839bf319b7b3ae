package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// answering is an agent that answers every line with one frame.
const answering = `while read -r line; do
	printf -- '---ARIZUKO_OUTPUT_START---\n{"status":"ok","result":"hello"}\n---ARIZUKO_OUTPUT_END---\n'
done`

// TestLog_DebugLevel_NamesEachStepOfAMessage follows one message from its row
// to the row of its answer by the ids in gated's log.
func TestLog_DebugLevel_NamesEachStepOfAMessage(t *testing.T) {
	log := &syncBuffer{}
	g := startGated(t, log, "LOG_LEVEL=debug")
	in := &msg.Message{
		ChatJID: "telegram:1", PlatformID: "p1", Direction: msg.In, Sender: "telegram:7", Verb: msg.VerbMessage,
		Content: "hi", Source: "teled", Timestamp: time.Now().UnixMilli(), ReceivedAt: time.Now().UnixMilli(),
	}
	err := g.Store.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(in)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Poke("gated")
	stop := runGated(t, g)
	// The run ends when gated stops, which ends the wait for its last line.
	log.await(t, `msg="answer stored"`)
	stop()

	row := fmt.Sprintf("row=%d", in.ID)
	for _, step := range []struct{ message, ids string }{
		{"chat has new rows", "chat=telegram:1"},
		{"row loaded", row + " chat=telegram:1"},
		{"rows resolved", "count=1 took="},
		{"row decided", row + " chat=telegram:1 disposition=routed reason=route folder=main turn=1"},
		{"turn stored", "turn=1 folder=main chat=telegram:1"},
		{"turn queued", "turn=1 folder=main chat=telegram:1"},
		{"run started", "run=1 folder=main chat=telegram:1 runtime=process pid="},
		{"prompt sent", "turn=1 run=1 bytes="},
		{"frame received", "turn=1 run=1 bytes=5 final=true"},
		{"answer stored", "row=2 turn=1 run=1"},
		{"run ended", "run=1 folder=main chat=telegram:1"},
	} {
		if n := log.count(step.message, step.ids); n != 1 {
			t.Errorf("%d lines %q with %s, want 1", n, step.message, step.ids)
		}
	}
	if t.Failed() {
		t.Logf("log:\n%s", log)
	}
}

// TestLog_InfoLevel_NamesNoMessage: without debug a message that is answered
// leaves no line.
func TestLog_InfoLevel_NamesNoMessage(t *testing.T) {
	log := &syncBuffer{}
	g := startGated(t, log)
	in := &msg.Message{ChatJID: "telegram:1", PlatformID: "p1", Direction: msg.In, Sender: "telegram:7", Verb: msg.VerbMessage,
		Content: "/ping", Timestamp: time.Now().UnixMilli(), ReceivedAt: time.Now().UnixMilli()}
	err := g.Store.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(in)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := runGated(t, g)
	for deadline := time.After(30 * time.Second); ; {
		m := message(t, g, in.ID)
		if m.Disposition != "" {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("the row is not decided:\n%s", log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	stop()
	if strings.Contains(log.String(), "row=") || strings.Contains(log.String(), "telegram:1") {
		t.Errorf("log:\n%s", log)
	}
}

func message(t *testing.T, g *gated, id int64) *msg.Message {
	t.Helper()
	m := storetest.Must(g.Store.Message(t.Context(), id))(t)
	return m
}

// startGated starts a gated of its own, in this process, with a fake routd
// that routes every row to main.
func startGated(t *testing.T, log *syncBuffer, env ...string) *gated {
	t.Helper()
	routd := httptest.NewServer(httpx.Verify("routd", func() string { return "0123456789abcdef" })(http.HandlerFunc(routeToMain)))
	t.Cleanup(routd.Close)
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Migrate(filepath.Join(data, "arizuko.db")); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load[Config](append(env, "ARIZUKO_DATA="+data, "ARIZUKO_SECRET=0123456789abcdef",
		"GATED_ADDR=127.0.0.1:0", "GATED_MCP_ADDR=127.0.0.1:0", "ROUTD_URL="+routd.URL, "POLL_INTERVAL=20ms", "AGENT_COMMAND="+answering))
	if err != nil {
		t.Fatal(err)
	}
	g := storetest.Must(start(t.Context(), cfg, log))(t)
	return g
}

func routeToMain(w http.ResponseWriter, r *http.Request) {
	var req routeapi.Request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	res := routeapi.Response{Version: 1}
	for _, it := range req.Items {
		res.Items = append(res.Items, routeapi.Answer{
			ID: it.ID, Action: routeapi.Trigger, Folder: "main", Home: "main", Reason: msg.ReasonRoute,
			Surface: "telegram-dm", Ceiling: 4000, Impulse: msg.DefaultImpulse(100, time.Minute),
		})
	}
	httpx.JSON(w, http.StatusOK, res)
}

// runGated runs g until the function returned is called, which waits for its
// end.
func runGated(t *testing.T, g *gated) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// count returns how many lines have a message and, in this order, ids.
func (b *syncBuffer) count(message, ids string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, fmt.Sprintf("msg=%q", message)) && strings.Contains(line, ids) {
			n++
		}
	}
	return n
}

func (b *syncBuffer) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.After(30 * time.Second); !strings.Contains(b.String(), text); {
		select {
		case <-deadline:
			t.Fatalf("no %s in the log:\n%s", text, b)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
