package status

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const (
	secret = "s3cret"
	now    = 1_700_000_000_000 // what the clock shows
	second = 1000
	minute = 60 * second
)

// fixture is a Status on its own database.
type fixture struct {
	t      *testing.T
	path   string
	st     *store.Store
	status *Status
	log    bytes.Buffer
	router chi.Router
}

func newFixture(t *testing.T) *fixture {
	path := storetest.Path(t)
	r := &fixture{t: t, path: path, st: storetest.OpenAt(t, path, nil)}
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	r.status = &Status{Store: r.st, Log: log, Now: func() time.Time { return time.UnixMilli(now) }}
	r.router = httpx.NewRouter(log, nil)
	r.status.Mount(r.router)
	r.group("main")
	return r
}

// route adds a route after the others.
func (r *fixture) route(match, target string) {
	r.t.Helper()
	r.sql(`INSERT INTO routes (seq, match, target) SELECT count(*), ?, ? FROM routes`, match, target)
}

func (r *fixture) write(fn func(*store.Tx) error) {
	r.t.Helper()
	storetest.Write(r.t, r.st, fn)
}

// sql is for rows that pkg/store has no writer for.
func (r *fixture) sql(statement string, args ...any) {
	r.t.Helper()
	storetest.Exec(r.t, r.path, statement, args...)
}

func (r *fixture) group(folder string) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: folder, Config: []byte("{}")})
		return err
	})
}

// beat writes a daemon's row, last refreshed age milliseconds ago.
func (r *fixture) beat(name string, c daemon.Connection, age int64) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		return rows.Heartbeat(tx, rows.Daemon{Name: name, Version: "v1", Connection: string(c), HeartbeatAt: now - age, Detail: "as @bot"})
	})
}

// healthy writes the rows of three running daemons.
func (r *fixture) healthy() {
	for _, name := range []string{"dashd", "gated", "routd"} {
		r.beat(name, daemon.Connected, 2*second)
	}
}

// inbound stores a row received age milliseconds ago.
func (r *fixture) inbound(chatJID string, age int64) *msg.Message {
	r.t.Helper()
	return storetest.Stored(r.t, r.st, &msg.Message{ChatJID: chatJID, Direction: msg.In, Content: "a private word", Timestamp: now - age, ReceivedAt: now - age})
}

// outbound stores a row to be sent, age milliseconds ago.
func (r *fixture) outbound(chatJID string, age int64) {
	r.t.Helper()
	storetest.Stored(r.t, r.st, &msg.Message{ChatJID: chatJID, Direction: msg.Out, Content: "an answer", Timestamp: now - age, ReceivedAt: now - age, OutState: msg.OutQueued})
}

// turn queues a turn of a chat, created age milliseconds ago and changed by set.
func (r *fixture) turn(chatJID string, age int64, set ...func(*msg.Turn)) *msg.Turn {
	r.t.Helper()
	t := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: chatJID, CreatedAt: now - age, WaitsFor: msg.WaitsFiles}
	for _, f := range set {
		f(t)
	}
	t.TriggerMessageID = r.inbound(chatJID, age).ID
	r.write(func(tx *store.Tx) error {
		if _, err := gatedtest.PutTurn(tx, t, 0); err != nil { // it waits, so that no live run takes it
			return err
		}
		if err := gatedtest.EndWait(tx, t.ID, msg.WaitsFiles); err != nil {
			return err
		}
		return tx.Decide(t.TriggerMessageID, store.Decision{
			Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: t.Folder, TurnID: t.ID,
		}, t.CreatedAt)
	})
	return t
}

func inThread(id string) func(*msg.Turn) {
	return func(t *msg.Turn) { t.ThreadID, t.Place, t.Topic = id, id, id }
}

func inTopic(topic string) func(*msg.Turn) {
	return func(t *msg.Turn) { t.Topic, t.Place = topic, topic }
}

// run starts a queued turn's agent age milliseconds ago.
func (r *fixture) run(t *msg.Turn, age int64) *msg.Run {
	r.t.Helper()
	run := &msg.Run{Folder: t.Folder, Topic: t.Topic, ChatJID: t.ChatJID, ThreadID: t.ThreadID, Runtime: "process", StartedAt: now - age}
	r.write(func(tx *store.Tx) error { return gatedtest.StartRun(tx, run, t.ID) })
	return run
}

// answered stores an answered turn of a chat, and its session.
func (r *fixture) answered(chatJID, session string, age int64, set ...func(*msg.Turn)) (reply int64) {
	r.t.Helper()
	t := r.turn(chatJID, age, set...)
	run := r.run(t, age)
	r.write(func(tx *store.Tx) error {
		err := gatedtest.AnswerTurn(tx, gatedtest.Reply{RunID: run.ID, TurnID: t.ID, Text: "yes", Final: true, SessionID: session, Sender: "agent:main"}, now-age)
		if err != nil {
			return err
		}
		return gatedtest.EndRun(tx, run.ID, "", now-age)
	})
	replies, err := factrows.TurnReplies(r.t.Context(), r.st.Reader, t.ID)
	if err != nil || len(replies) != 1 {
		r.t.Fatalf("replies %v, %v", replies, err)
	}
	r.sql(`UPDATE messages SET out_state = 'sent' WHERE id = ?`, replies[0].ID)
	return replies[0].ID
}

func (r *fixture) retryAt(t *msg.Turn, at int64) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		return gatedtest.RequeueTurn(tx, t.ID, gatedtest.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, Problem: "exit 1: token=hush", NotBefore: at})
	})
}

// engage opens a window as routd does.
func (r *fixture) engage(chatJID, place string, at, until int64) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		return factrows.PutEngagement(tx, msg.Engagement{ChatJID: chatJID, Place: place, Folder: "main", At: at, Until: until})
	})
}

// fork stores a fork with a thread of its own, off the first message there is.
func (r *fixture) fork(folder, topic, thread string) {
	r.t.Helper()
	f := &msg.Fork{ChatJID: tele, Topic: topic, Folder: folder, ThreadID: thread, OwnThread: true, MessageID: 1, CreatedAt: now}
	r.write(func(tx *store.Tx) error { return gatedtest.PutFork(tx, f) })
}

// pin pins a chat as a bare token does, age milliseconds ago.
func (r *fixture) pin(chatJID, folder, topic string, age int64) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		if err := tx.EnsureChat(chatJID, now); err != nil {
			return err
		}
		if err := gatedtest.PinTopic(tx, chatJID, topic); err != nil || folder == "" {
			return err
		}
		return gatedtest.PinGroup(tx, chatJID, folder, now-age)
	})
}

func (r *fixture) chat(at Where) Report {
	r.t.Helper()
	report, err := r.status.Chat(r.t.Context(), at)
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

func (r *fixture) get(query, accept string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, "/status"+query, nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	rec := httptest.NewRecorder()
	r.router.ServeHTTP(rec, req)
	return rec
}

// show prints what a pointer points at.
func show[T any](p *T) string {
	if p == nil {
		return "null"
	}
	return fmt.Sprint(*p)
}
