package news

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"arizuko/dashd/internal/live"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is less than the time between two pings, which would hide a missing notification.
const timeout = 10 * time.Second

// fixture is the stream over HTTP.
type fixture struct {
	st   *store.Store
	db   *sql.DB // another process
	hub  *live.Hub
	base string

	stopped atomic.Bool // gated
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arizuko.db")
	if err := storetest.Migrate(path); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_busy_timeout=10000&_synchronous=NORMAL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	f := &fixture{st: storetest.OpenAt(t, path, nil), db: db}
	log := slog.New(slog.DiscardHandler)
	f.hub = live.NewHub(func(*http.Request) bool { return true }, log)
	n := &News{Store: f.st.Reader, Hub: f.hub, Worker: "/assets/v/worker.js", Login: func(*http.Request) string { return "web:ada" },
		Runs: func(context.Context) (bool, error) { return !f.stopped.Load(), nil }}
	router := httpx.NewRouter(log, nil)
	router.Get("/events", n.Events)
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if f.hub != nil {
			f.hub.Close()
		}
	})
	f.base = server.URL
	return f
}

// put stores a row, in state "" an inbound one.
func (f *fixture) put(t testing.TB, jid string, state msg.OutState) int64 {
	t.Helper()
	m := &msg.Message{ChatJID: jid, Direction: msg.In, Timestamp: 1, ReceivedAt: 1}
	if state != "" {
		m.Direction, m.OutState = msg.Out, state
	}
	f.write(t, func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	return m.ID
}

func (f *fixture) settle(t testing.TB, id int64, state msg.OutState) {
	t.Helper()
	if _, err := f.db.Exec(`UPDATE messages SET out_state = ? WHERE id = ?`, state, id); err != nil {
		t.Fatal(err)
	}
	f.hub.Notify()
}

func (f *fixture) write(t testing.TB, fn func(*store.Tx) error) {
	t.Helper()
	if err := f.st.Write(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
	f.hub.Notify()
}

// stream is an open stream.
type stream struct {
	t     testing.TB
	lines *bufio.Scanner
	body  io.Closer
}

func (f *fixture) open(t testing.TB) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	s := &stream{t, bufio.NewScanner(res.Body), res.Body}
	s.want("hello", `{"worker":"/assets/v/worker.js","login":"web:ada"}`)
	s.want("typing", `{"chats":{}}`)
	s.want("progress", `{"chats":{}}`)
	return s
}

// next reads an event, "" at the end.
func (s *stream) next() (name, data string) {
	s.t.Helper()
	for s.lines.Scan() {
		key, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch {
		case key == "event":
			name = value
		case key == "data":
			data = value
		case key == "" && name != "":
			return name, data
		}
	}
	if err := s.lines.Err(); err != nil {
		s.t.Fatalf("the stream was broken off: %v", err)
	}
	return "", ""
}

func (s *stream) want(name, data string) {
	s.t.Helper()
	if gotName, gotData := s.next(); gotName != name || gotData != data {
		s.t.Fatalf("event %s %s, want %s %s", gotName, gotData, name, data)
	}
}

// news reads events until all these chats were announced, and returns the last id of each.
func (s *stream) news(want map[string]int64) {
	s.t.Helper()
	got := map[string]int64{}
	for len(got) < len(want) || !maps.Equal(got, want) {
		name, data := s.next()
		var e struct{ Chats map[string]int64 }
		if err := json.Unmarshal([]byte(data), &e); name != "changed" || err != nil {
			s.t.Fatalf("event %s %s, want %v after %v", name, data, want, got)
		}
		for folder, id := range e.Chats {
			if id <= got[folder] {
				s.t.Fatalf("%s was announced up to %d, then up to %d", folder, got[folder], id)
			}
			got[folder] = id
		}
	}
}

func TestEvents_NewRows_AnnouncedOnce(t *testing.T) {
	f := newFixture(t)
	f.put(t, "web:old", "")
	s := f.open(t)
	first := f.put(t, "web:acme/eng", "")
	s.news(map[string]int64{"acme/eng": first})
	f.put(t, "telegram:-5", "")
	s.want("changed", `{"chats":{}}`)
	sent := f.put(t, "web:main", msg.OutSent)
	s.news(map[string]int64{"main": sent})
	f.hub.Notify()
	s.want("changed", `{"chats":{}}`)
}

// A row is announced when it can be read: once it and those before it are delivered.
func TestEvents_Undelivered_AnnouncedAfterwards(t *testing.T) {
	f := newFixture(t)
	before := f.put(t, "web:main", msg.OutSending)
	s := f.open(t)
	f.settle(t, before, msg.OutSent)
	s.news(map[string]int64{"main": before})
	slow := f.put(t, "web:main", msg.OutQueued)
	s.want("changed", `{"chats":{}}`)
	quick := f.put(t, "web:main", msg.OutSent)
	s.want("changed", `{"chats":{}}`)
	other := f.put(t, "web:other", msg.OutSent)
	s.news(map[string]int64{"other": other})
	last := f.put(t, "web:main", msg.OutQueued)
	s.want("changed", `{"chats":{}}`)
	f.settle(t, slow, msg.OutSent)
	s.want("changed", fmt.Sprintf(`{"chats":{"main":%d}}`, last-1))
	f.settle(t, last, msg.OutFailed)
	s.want("changed", fmt.Sprintf(`{"chats":{"main":%d}}`, last))
	if quick >= last {
		t.Error("the test is wrong")
	}
}

// A storm of writes costs a stream a few looks, and no chat is left out.
func TestEvents_Storm_Coalesced(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	want := map[string]int64{}
	start := time.Now()
	f.write(t, func(tx *store.Tx) error {
		for i := range 3 * rowsAtOnce {
			m := &msg.Message{ChatJID: fmt.Sprintf("web:g%d", i%1500), Direction: msg.In, Timestamp: 1, ReceivedAt: 1}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			want[strings.TrimPrefix(m.ChatJID, "web:")] = m.ID
		}
		return nil
	})
	for range 200 {
		f.hub.Notify()
		time.Sleep(time.Millisecond) //nolint:forbidigo // writes that take their time
	}
	s.news(want)
	id := f.put(t, "web:last", "")
	events := 0
	for {
		name, data := s.next()
		events++
		if name == "changed" && strings.Contains(data, fmt.Sprintf(`"last":%d`, id)) {
			break
		}
	}
	if most := 2 + int(time.Since(start)/minGap); events > most {
		t.Errorf("%d more events, want at most %d", events, most)
	}
}

func TestEvents_Typing(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "web:main", Topic: "#a", Place: "#a", TriggerMessageID: f.put(t, "web:main", "")}
	f.write(t, func(tx *store.Tx) error { _, err := gatedtest.PutTurn(tx, turn, 0); return err })
	f.write(t, func(tx *store.Tx) error {
		return gatedtest.StartRun(tx, &msg.Run{Folder: "main", Topic: "#a", ChatJID: "web:main", Runtime: "process"}, turn.ID)
	})
	typing := func() string {
		for {
			if name, data := s.next(); name != "changed" {
				return name + data
			}
		}
	}
	if got := typing(); got != `typing{"chats":{"main":["#a"]}}` {
		t.Error(got)
	}
	f.write(t, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, turn.ID, msg.ReasonRoute, 1) })
	if got := typing(); got != `typing{"chats":{}}` {
		t.Error(got)
	}
}

// Work is announced when it changes, and its end once the answer is.
func TestEvents_Progress_EndsAfterTheAnswer(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "web:main", TriggerMessageID: f.put(t, "web:main", "")}
	run := &msg.Run{Folder: "main", ChatJID: "web:main", Runtime: "process"}
	f.write(t, func(tx *store.Tx) error { _, err := gatedtest.PutTurn(tx, turn, 0); return err })
	f.write(t, func(tx *store.Tx) error { return gatedtest.StartRun(tx, run, turn.ID) })
	work := func() string {
		for {
			switch name, data := s.next(); name {
			case "changed", "typing":
			default:
				return name + data
			}
		}
	}
	for at := range int64(2) {
		f.write(t, func(tx *store.Tx) error {
			return gatedtest.PutProgress(tx, *run, turn.ID, &store.Progress{State: agentproto.StatusRunning, Text: "half", UpdatedAt: 5 + at})
		})
		if got, want := work(), fmt.Sprintf(`progress{"chats":{"main":{"%d":%d}}}`, turn.ID, 5+at); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	answer := f.put(t, "web:main", msg.OutQueued)
	f.write(t, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, turn.ID, msg.ReasonRoute, 1) })
	for name := ""; name != "typing"; {
		name, _ = s.next()
	}
	f.settle(t, answer, msg.OutSent)
	s.news(map[string]int64{"main": answer})
	s.want("progress", `{"chats":{}}`)
}

func TestEvents_TurnWaitsForAnotherAttempt_IsSaid(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	for _, w := range []struct {
		place string
		what  msg.WaitsFor
		until int64
	}{{"#a", msg.WaitsRetry, 700}, {"#a", msg.WaitsProbe, 900}, {"#b", msg.WaitsFiles, 5}} {
		turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "web:main", Place: w.place, Topic: w.place, WaitsFor: w.what, NotBefore: w.until,
			TriggerMessageID: f.put(t, "web:main", "")}
		f.write(t, func(tx *store.Tx) error { _, err := gatedtest.PutTurn(tx, turn, 0); return err })
	}
	for {
		if name, data := s.next(); name == "typing" {
			if want := `{"chats":{},"waits":{"main":{"#a":{"for":"retry","until":700}}}}`; data != want {
				t.Errorf("%s, want %s", data, want)
			}
			return
		}
	}
}

func TestEvents_GatedStopsAndStarts_IsSaid(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	for _, stopped := range []bool{true, false} {
		f.stopped.Store(stopped)
		name, data := "", ""
		for name != "typing" {
			f.hub.Notify()
			name, data = s.next()
		}
		if want := map[bool]string{true: `{"chats":{},"stopped":true}`, false: `{"chats":{}}`}[stopped]; data != want {
			t.Errorf("%s, want %s", data, want)
		}
	}
}

func TestEvents_Stop_IsSaid(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	f.hub.Close()
	f.hub = nil
	s.want("stopping", "{}")
	s.want("", "")
}

func TestEvents_DatabaseGone_Ends(t *testing.T) {
	f := newFixture(t)
	s := f.open(t)
	if err := f.st.Close(); err != nil {
		t.Fatal(err)
	}
	f.hub.Notify()
	s.want("", "")
}

// Whatever is written and delivered in which order, the announcements lead a page to all rows that can be read, and a row
// that can't be read yet is not announced.
func TestFeed_AnyOrder_LeadsToAllRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chats := []string{"web:a", "web:b"}
		f := &feed{pending: map[string]pending{}}
		announced, newest := map[string]int64{}, map[string]int64{} // by chat
		undelivered := map[int64]string{}                           // row → chat
		unread := map[string]int64{}                                // newest rows since the last look
		var last int64
		look := func() {
			oldest := map[string]int64{}
			for id, jid := range undelivered {
				if first, ok := oldest[jid]; !ok || id < first {
					oldest[jid] = id
				}
			}
			ready := f.ready(unread, oldest)
			f.last, unread = last, map[string]int64{}
			for name, id := range ready {
				if first, waits := oldest["web:"+name]; id <= announced["web:"+name] || waits && id >= first {
					t.Fatalf("%s was announced up to %d after %d; undelivered from %d", name, id, announced["web:"+name], first)
				}
				announced["web:"+name] = id
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"in": func(t *rapid.T) {
				last++
				jid := rapid.SampledFrom(chats).Draw(t, "chat")
				newest[jid], unread[jid] = last, last
			},
			"out": func(t *rapid.T) {
				last++
				jid := rapid.SampledFrom(chats).Draw(t, "chat")
				newest[jid], unread[jid], undelivered[last] = last, last, jid
			},
			"delivered": func(t *rapid.T) {
				if len(undelivered) == 0 {
					t.Skip()
				}
				ids := []int64{}
				for id := range last + 1 {
					if undelivered[id] != "" {
						ids = append(ids, id)
					}
				}
				delete(undelivered, rapid.SampledFrom(ids).Draw(t, "row"))
			},
			"look": func(*rapid.T) { look() },
		})
		clear(undelivered)
		look()
		if diff := cmp.Diff(newest, announced); diff != "" {
			t.Fatalf("announced (-want +got):\n%s", diff)
		}
		if len(f.pending) != 0 {
			t.Fatalf("kept: %v", f.pending)
		}
	})
}
