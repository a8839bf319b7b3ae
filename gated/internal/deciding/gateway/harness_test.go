package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	dm      = "telegram:1"
	maxHold = time.Minute
)

// harness is a gateway on a database of its own, with a fake routd and fake
// agents. Nothing runs by itself: step makes its passes, and its clock stands
// still until wait moves it.
type harness struct {
	t      *testing.T
	path   string // of the database
	st     *store.Store
	g      *Gateway
	routd  *fakeRoutd
	agents *fakeAgents
	waits  []string // reported last
	log    bytes.Buffer
	clock  time.Time
	posts  int
	onbod  string // its URL, "" for one that is not found
	shards int    // of the next restart
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, path: storetest.Path(t), agents: &fakeAgents{}, clock: time.Now()}
	h.st = storetest.OpenAt(t, h.path, nil)
	h.routd = newFakeRoutd(t)
	for _, folder := range []string{"main", "main/eng"} {
		h.write(func(tx *store.Tx) error {
			_, err := tx.PutGroup(&msg.Group{Folder: folder, Config: []byte(`{}`)})
			return err
		})
	}
	h.restart()
	return h
}

// parallel is newHarness for a test that runs beside others.
func parallel(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	return newHarness(t)
}

// restart replaces the gateway by one that knows only the database.
func (h *harness) restart() {
	h.t.Helper()
	client := httpx.NewClient("routd", h.routd.URL, "")
	h.t.Cleanup(client.HTTP.CloseIdleConnections)
	onbod := httpx.NewClient("routd", cmp.Or(h.onbod, h.routd.URL), "")
	h.t.Cleanup(onbod.HTTP.CloseIdleConnections)
	log := slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h.g = New(Config{
		Shards: h.shards, Poll: time.Hour, MaxAge: 24 * time.Hour, Impulse: msg.DefaultImpulse(100, maxHold),
		Operators: map[string]bool{"telegram:9": true}, BotNames: []string{"ari"},
		Routd: client, Onbod: onbod, Dashd: httpx.NewClient("routd", h.routd.URL, ""), Now: func() time.Time { return h.clock },
		Report: func(waits []string) { h.waits = waits },
	}, h.st, h.agents, nil, log, nil)
	h.g.routd.timeout, h.g.routd.patience = time.Minute, time.Minute // a busy machine is no slow routd
	if err := h.g.catchUp(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// step makes passes until there is nothing to do.
func (h *harness) step() {
	h.t.Helper()
	for range 1000 {
		if h.g.runOnce(h.t.Context()) {
			continue
		}
		if h.g.routd.out == nil && h.g.requests.running == 0 {
			return
		}
		h.g.listen(h.t.Context(), nil, nil, false)
	}
	h.t.Fatalf("the gateway does not come to rest:\n%s", h.log.String())
}

// wait moves the clock and makes the passes that are due then.
func (h *harness) wait(d time.Duration) {
	h.t.Helper()
	h.clock = h.clock.Add(d)
	h.step()
}

func (h *harness) write(fn func(*store.Tx) error) {
	h.t.Helper()
	if err := h.st.Write(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

// put stores an inbound row, as an adapter does. A change may be nil.
func (h *harness) put(text string, change ...func(*msg.Message)) *msg.Message {
	h.t.Helper()
	h.posts++
	now := h.clock.UnixMilli()
	m := &msg.Message{
		ChatJID: dm, PlatformID: fmt.Sprintf("p%d", h.posts), Direction: msg.In, Sender: "telegram:7", Verb: msg.VerbMessage,
		Content: text, Source: "teled", Timestamp: now, ReceivedAt: now,
	}
	for _, f := range change {
		if f != nil {
			f(m)
		}
	}
	h.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(m)
		return err
	})
	return m
}

// putMany stores rows in one commit.
func (h *harness) putMany(count int, change func(n int, m *msg.Message)) (rows []*msg.Message) {
	h.t.Helper()
	now := h.clock.UnixMilli()
	h.write(func(tx *store.Tx) error {
		for n := range count {
			h.posts++
			m := &msg.Message{
				ChatJID: dm, PlatformID: fmt.Sprintf("p%d", h.posts), Direction: msg.In, Sender: "telegram:7", Verb: msg.VerbMessage,
				Content: fmt.Sprint(n), Source: "teled", Timestamp: now, ReceivedAt: now,
			}
			change(n, m)
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			rows = append(rows, m)
		}
		return nil
	})
	return rows
}

// take is put, and makes the passes that follow.
func (h *harness) take(text string, change ...func(*msg.Message)) *msg.Message {
	h.t.Helper()
	m := h.put(text, change...)
	h.step()
	return m
}

func verb(v string) func(*msg.Message) { return func(m *msg.Message) { m.Verb = v } }

func on(target *msg.Message) func(*msg.Message) {
	return func(m *msg.Message) { m.TargetID = target.PlatformID }
}

func in(jid string) func(*msg.Message) { return func(m *msg.Message) { m.ChatJID = jid } }

// turnIs checks the state of a turn.
func (h *harness) turnIs(id int64, want msg.TurnState) {
	h.t.Helper()
	if turn, err := h.st.Turn(h.t.Context(), id); err != nil || turn.State != want {
		h.t.Errorf("the turn is %+v, %v; want it %s", turn, err, want)
	}
}

func (h *harness) row(id int64) *msg.Message {
	h.t.Helper()
	m, err := h.st.Message(h.t.Context(), id)
	if err != nil || m == nil {
		h.t.Fatalf("row %d: %v", id, err)
	}
	return m
}

// is checks how a row was decided: "disposition/reason folder", "" for undecided.
func (h *harness) is(m *msg.Message, want string) {
	h.t.Helper()
	now := h.row(m.ID)
	got := ""
	if now.Disposition != "" {
		got = fmt.Sprintf("%s/%s %s", now.Disposition, now.Reason, now.RoutedTo)
	}
	if got != want {
		h.t.Errorf("row %d (%.40q) is %q, want %q\n%s", m.ID, m.Content, got, want, h.log.String())
	}
}

// are is is for several rows.
func (h *harness) are(want string, rows ...*msg.Message) {
	h.t.Helper()
	for _, m := range rows {
		h.is(m, want)
	}
}

// ends makes the passes that a row needs, and checks how it was decided.
func (h *harness) ends(m *msg.Message, want string) {
	h.t.Helper()
	h.step()
	h.is(m, want)
}

// dispatched takes the turns handed to the agents so far: the texts of each.
func (h *harness) dispatched() (all [][]string) {
	h.t.Helper()
	for _, t := range h.agents.turns {
		rows := storetest.Must(factrows.TurnMessages(h.t.Context(), h.st.Reader, t.ID))(h.t)
		var texts []string
		for _, m := range rows {
			texts = append(texts, m.Content)
		}
		all = append(all, texts)
	}
	h.agents.turns = nil
	return all
}

// replies are the texts that the gateway wrote itself about a row.
func (h *harness) replies(m *msg.Message) (all []string) {
	h.t.Helper()
	rows := storetest.Must(factrows.OwnReplies(h.t.Context(), h.st.Reader, m))(h.t)
	for _, r := range rows {
		all = append(all, r.Content)
	}
	return all
}

// fakeAgents note the calls of the gateway. No run is live.
type fakeAgents struct {
	turns   []*msg.Turn
	stopped [][]int64 // of each time, the turns that were cancelled
	changed []*msg.Turn
	drained []int64
	panics  bool

	asksEnded int
	revived   int
}

func (a *fakeAgents) Poked() {}

// Changed notes the turns.
func (a *fakeAgents) Changed(turns ...*msg.Turn) { a.changed = append(a.changed, turns...) }
func (a *fakeAgents) AskEnded()                  { a.asksEnded++ }
func (a *fakeAgents) Revived()                   { a.revived++ }
func (a *fakeAgents) Drain(runID int64)          { a.drained = append(a.drained, runID) }

// Stop notes the cancelled turns.
func (a *fakeAgents) Stop(cancelled []*msg.Turn) {
	var ids []int64
	for _, t := range cancelled {
		ids = append(ids, t.ID)
	}
	a.stopped = append(a.stopped, ids)
}

// Dispatch notes the turns.
func (a *fakeAgents) Dispatch(turns ...*msg.Turn) {
	if a.panics {
		panic("no agents")
	}
	a.turns = append(a.turns, turns...)
}

// fakeRoutd answers every question as answer says: by default, every row is
// routed to main.
type fakeRoutd struct {
	*httptest.Server
	down atomic.Bool

	mu      sync.Mutex
	version int64
	answer  func(routeapi.Item, *routeapi.Answer)
	perRow  time.Duration
	count   int // questions about rows
}

// delay makes routd take that long for each row from here on.
func (r *fakeRoutd) delay(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perRow = d
}

func (r *fakeRoutd) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

func newFakeRoutd(t *testing.T) *fakeRoutd {
	r := &fakeRoutd{version: 1}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// slow makes routd answer nothing until it is released, and commands wait for it as briefly as in the product.
func (h *harness) slow() (release func()) {
	hold := make(chan struct{})
	h.g.routd.patience = commandWait
	h.routd.route(func(routeapi.Item, *routeapi.Answer) { <-hold })
	return func() { close(hold) }
}

// serve starts another service.
func serve(t *testing.T, answer http.HandlerFunc) *httpx.Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	client := httpx.NewClient("service", s.URL, "")
	t.Cleanup(client.HTTP.CloseIdleConnections)
	return client
}

// routdBack makes routd answer again, and the passes once a probe has found that.
func (h *harness) routdBack() {
	h.t.Helper()
	h.routd.down.Store(false)
	for h.g.routd.away() {
		h.g.listen(h.t.Context(), nil, nil, false)
	}
	h.step()
}

// route changes how rows are answered from here on.
func (r *fakeRoutd) route(answer func(routeapi.Item, *routeapi.Answer)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	r.answer = answer
}

func (r *fakeRoutd) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.down.Load() || req.URL.Path != routeapi.Path { // no other service is there
		httpx.Error(w, apierr.New(apierr.Unavailable, "down"))
		return
	}
	var in routeapi.Request
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	out, answer, perRow := routeapi.Response{Version: r.version}, r.answer, r.perRow
	if len(in.Items) > 0 {
		r.count++
	}
	r.mu.Unlock()
	for _, it := range in.Items {
		select {
		case <-req.Context().Done():
			return
		case <-time.After(perRow):
		}
		a := routeapi.Answer{
			ID: it.ID, Action: routeapi.Trigger, Folder: "main", Home: "main", Reason: msg.ReasonRoute, ThreadID: it.ThreadID,
			Surface: "telegram-dm", Ceiling: 4000, Impulse: msg.DefaultImpulse(100, maxHold),
		}
		if it.Folder != "" {
			a.Folder = it.Folder
		}
		if answer != nil {
			answer(it, &a)
		}
		out.Items = append(out.Items, a)
	}
	if r.down.Load() { // it went away meanwhile
		httpx.Error(w, apierr.New(apierr.Unavailable, "down"))
		return
	}
	httpx.JSON(w, http.StatusOK, out)
}
