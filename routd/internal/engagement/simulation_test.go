package engagement_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"pgregory.net/rapid"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/routd/internal/engagement"
)

// ttl is odd, and so are the times at which users write; everything else happens at even times. So
// no two of them coincide: the order of such two is not specified.
const ttl = 20*time.Minute + time.Millisecond

// simulation is a database in which gated and the adapters work, and a model that receives the same
// events.
type simulation struct {
	st      *store.Store
	db      *sql.DB // another connection
	number  int
	tracker *engagement.Tracker
	down    bool // routd does not run
	now     int64
	model   *model
	places  []place
	turns   []*turn
	out     []*reply
	last    map[string]int64 // when a user wrote last, by chat
	shown   map[place]int64  // when an answer was delivered last
	seen    map[string]int   // how often each interesting case happened
}

type turn struct {
	*msg.Turn
	place
	answersFor string    // the folder that its answers engage
	claims     []hold    // by its rows that claim
	claim      *progress // nil if it has none
	open       bool
	whole      bool // it takes in no more rows: one has joined, or it has begun, or delegated
}

// reply is an outbound row. Only some count as answers.
type reply struct {
	id      int64
	turn    *turn
	answers bool
	claimed bool
	parts   []msg.OutState
}

func newSimulation(t *rapid.T, st *store.Store, db *sql.DB, seen map[string]int) *simulation {
	seen["simulations"]++
	number := seen["simulations"]
	a, b := fmt.Sprintf("telegram:-%d", number), fmt.Sprintf("slack:C%d", number)
	w := &simulation{
		st: st, db: db, number: number, now: 1_800_000_000_000, model: newModel(ttl.Milliseconds()), places: []place{{a, ""}, {a, "33"}, {b, ""}},
		last: map[string]int64{}, shown: map[place]int64{}, seen: seen,
	}
	w.write(t, func(tx *store.Tx) error {
		if err := tx.EnsureChat(a, w.now); err != nil {
			return err
		}
		return tx.EnsureChat(b, w.now)
	})
	w.restart(t)
	return w
}

func (w *simulation) write(t *rapid.T, fn func(*store.Tx) error) {
	if err := w.st.Write(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func (w *simulation) restart(t *rapid.T) {
	tracker, err := engagement.Open(context.Background(), w.st, ttl, func() time.Time { return time.UnixMilli(w.now) }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.tracker, w.down = tracker, false
}

func (w *simulation) sawCase(what string) { w.seen[what]++ }

func (w *simulation) drawPlace(t *rapid.T) place { return rapid.SampledFrom(w.places).Draw(t, "place") }

func drawFolder(t *rapid.T) string {
	return rapid.SampledFrom([]string{"eng", "eng", "ops"}).Draw(t, "folder")
}

// arrival draws when a row came that is decided now: some time ago, but not before rows decided
// earlier.
func (w *simulation) arrival(t *rapid.T, chat string) int64 {
	ago := rapid.SampledFrom([]int64{0, 0, 0, 2000, 600_000}).Draw(t, "arrived before")
	w.last[chat] = max(w.now-ago-1, w.last[chat]+2)
	return w.last[chat]
}

// mention fires a turn that claims its place; message one that does if its place is engaged.
func (w *simulation) mention(t *rapid.T) { w.fire(t, msg.VerbMention) }
func (w *simulation) message(t *rapid.T) { w.fire(t, msg.VerbMessage) }

func (w *simulation) fire(t *rapid.T, verb string) {
	p, folder := w.drawPlace(t), drawFolder(t)
	w.notTooMany(t, p)
	row := &msg.Message{ChatJID: p.chat, Direction: msg.In, Verb: verb, ThreadID: p.in, ReceivedAt: w.arrival(t, p.chat)}
	reason := msg.ReasonRoute
	if by := w.model.holder(p, row.ReceivedAt); verb == msg.VerbMessage && by != (hold{}) && row.ReceivedAt > w.shown[p] {
		folder, reason = by.folder, msg.ReasonEngaged
		w.sawCase("a row of an engaged place claims it")
	}
	tn := &turn{place: p, answersFor: folder, Turn: &msg.Turn{
		Kind: msg.Conversation, Folder: folder, ChatJID: p.chat, ThreadID: p.in, Place: p.in,
	}}
	w.claim(tn, row, reason)
	w.begin(t, tn, row, reason)
}

// claim makes a row claim the place of its turn if it mentions the bot or came while it was engaged.
func (w *simulation) claim(tn *turn, row *msg.Message, reason msg.Reason) {
	if row.Verb != msg.VerbMention && reason != msg.ReasonEngaged {
		return
	}
	// Deliveries from before the mention was stored do not count for it.
	row.ReceivedAt = max(row.ReceivedAt, w.shown[tn.place]+1)
	w.last[tn.chat] = max(row.ReceivedAt, w.last[tn.chat])
	tn.ClaimsEngagement = true
	if tn.claim == nil {
		tn.claim = &progress{working: true}
	}
	by := hold{tn.answersFor, row.ReceivedAt}
	tn.claims = append(tn.claims, by)
	w.model.called(tn.place, by, tn.claim)
}

// join makes a turn that has not begun take in a mention.
func (w *simulation) join(t *rapid.T) {
	tn := w.drawTurn(t)
	w.notTooMany(t, tn.place)
	if tn.whole || tn.Kind != msg.Conversation {
		t.Skip("the turn takes in no more")
	}
	tn.whole = true
	row := &msg.Message{
		ChatJID: tn.chat, Direction: msg.In, Verb: msg.VerbMention, ThreadID: tn.in, ReceivedAt: w.arrival(t, tn.chat),
	}
	w.claim(tn, row, msg.ReasonRoute)
	w.write(t, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(row); err != nil {
			return err
		}
		return w.decide(tx, tn, row, msg.ReasonRoute)
	})
	w.shell(t, fmt.Sprintf(`UPDATE turns SET claims_engagement = 1 WHERE id = %d`, tn.ID))
	w.sawCase("a mention joins a turn")
}

func (w *simulation) decide(tx *store.Tx, tn *turn, row *msg.Message, reason msg.Reason) error {
	return tx.Decide(row.ID, store.Decision{
		Disposition: msg.Routed, Reason: reason, RoutedTo: tn.Folder, TurnID: tn.ID, ThreadID: tn.ThreadID,
	}, w.now)
}

// shell changes the database on another connection.
func (w *simulation) shell(t *rapid.T, query string) {
	if _, err := w.db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// begin stores a row and the turn that it fires, as gated does.
func (w *simulation) begin(t *rapid.T, tn *turn, row *msg.Message, reason msg.Reason) {
	tn.CreatedAt, tn.Topic = w.now, fmt.Sprintf("#t%d-%d", w.number, len(w.turns))
	w.write(t, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(row); err != nil {
			return err
		}
		tn.TriggerMessageID = row.ID
		if _, err := gatedtest.PutTurn(tx, tn.Turn, 0); err != nil {
			return err
		}
		return w.decide(tx, tn, row, reason)
	})
	tn.open = true
	w.turns = append(w.turns, tn)
}

// notTooMany stays below the number of claims that are read. Others are older than 32 that gated
// has decided before: rows are decided in their order.
func (w *simulation) notTooMany(t *rapid.T, p place) {
	if len(w.model.history(p).mentions) >= 32 {
		t.Skip("there are enough mentions")
	}
}

// delegate passes a turn to a group below, which answers in the same place for the first.
func (w *simulation) delegate(t *rapid.T) {
	root := w.drawTurn(t)
	w.notTooMany(t, root.place)
	tn := &turn{place: root.place, answersFor: root.answersFor, Turn: &msg.Turn{
		Kind: msg.Delegated, Folder: root.Folder + "/kid", ChatJID: root.chat, ThreadID: root.in, Place: root.in,
		ClaimsEngagement: root.ClaimsEngagement, RootTurnID: root.Root(), Depth: 1,
	}}
	if root.whole = true; root.claim != nil {
		tn.claims, tn.claim = root.claims, &progress{working: true}
		for _, by := range root.claims {
			w.model.called(root.place, by, tn.claim)
		}
	}
	w.begin(t, tn, &msg.Message{ChatJID: "group:" + tn.Folder, Direction: msg.In, ReceivedAt: w.now}, msg.ReasonRoute)
}

// broadcast posts into a place without a mention.
func (w *simulation) broadcast(t *rapid.T) {
	p, folder := w.drawPlace(t), drawFolder(t)
	w.begin(t, &turn{place: p, Turn: &msg.Turn{
		Kind: msg.Broadcast, Folder: folder, ChatJID: p.chat, ThreadID: p.in, Place: p.in,
	}}, &msg.Message{ChatJID: "group:" + folder, Direction: msg.In, ReceivedAt: w.now}, msg.ReasonRoute)
}

// drawTurn draws a turn in progress.
func (w *simulation) drawTurn(t *rapid.T) *turn {
	var open []*turn
	for _, tn := range w.turns {
		if tn.open {
			open = append(open, tn)
		}
	}
	if len(open) == 0 {
		t.Skip("no turn is in progress")
	}
	return open[rapid.IntRange(0, len(open)-1).Draw(t, "turn")]
}

// start makes an agent run a turn.
func (w *simulation) start(t *rapid.T, tn *turn) {
	tn.whole = true
	now, err := w.st.Turn(context.Background(), tn.ID)
	if err != nil {
		t.Fatal(err)
	}
	if tn.Turn = now; now.State != msg.TurnQueued {
		return
	}
	run := &msg.Run{Folder: tn.Folder, Topic: tn.Topic, ChatJID: tn.chat, Runtime: "process", StartedAt: w.now}
	w.write(t, func(tx *store.Tx) error { return gatedtest.StartRun(tx, run, tn.ID) })
	tn.RunID = run.ID
}

// answer is a frame, silence if the text is empty.
func (w *simulation) answer(t *rapid.T, tn *turn, text string, final bool) {
	w.start(t, tn)
	w.write(t, func(tx *store.Tx) error {
		return gatedtest.AnswerTurn(tx, gatedtest.Reply{RunID: tn.RunID, TurnID: tn.ID, Text: text, Final: final}, w.now)
	})
	if text != "" {
		rows, err := factrows.TurnReplies(t.Context(), w.st.Reader, tn.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.queued(rows[len(rows)-1].ID, tn, tn.answersFor != "")
	}
	if final {
		w.ended(tn)
	}
}

func (w *simulation) say(t *rapid.T)      { w.answer(t, w.drawTurn(t), "more follows", false) }
func (w *simulation) conclude(t *rapid.T) { w.answer(t, w.drawTurn(t), "this is it", true) }
func (w *simulation) silence(t *rapid.T)  { w.answer(t, w.drawTurn(t), "", true) }

func (w *simulation) queued(id int64, tn *turn, answers bool) {
	if answers && tn.claim != nil {
		tn.claim.unsent++
	}
	w.out = append(w.out, &reply{id: id, turn: tn, answers: answers})
}

func (w *simulation) ended(tn *turn) {
	tn.open = false
	if tn.claim == nil {
		return
	}
	tn.claim.working = false
	if tn.claim.checkOver(w.now); tn.claim.over == w.now {
		w.sawCase("a claim is dropped with its turn")
	}
}

// fail ends a turn that its agent could not answer, cancel one that a user stopped; requeue makes
// it begin again.
func (w *simulation) fail(t *rapid.T) {
	tn := w.drawTurn(t)
	w.write(t, func(tx *store.Tx) error {
		return gatedtest.FinishTurn(tx, tn.Turn, msg.TurnFailed, msg.ReasonAgentError, "broke", w.now)
	})
	w.ended(tn)
}

func (w *simulation) cancel(t *rapid.T) {
	tn := w.drawTurn(t)
	w.write(t, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, tn.ID, msg.ReasonCancelled, w.now) })
	w.out = slices.DeleteFunc(w.out, func(r *reply) bool {
		withdrawn := r.turn == tn && !r.claimed
		if withdrawn && r.answers && tn.claim != nil {
			tn.claim.unsent--
		}
		return withdrawn
	})
	w.ended(tn)
}

func (w *simulation) requeue(t *rapid.T) {
	tn := w.drawTurn(t)
	w.write(t, func(tx *store.Tx) error {
		if err := gatedtest.EndRun(tx, tn.RunID, "broke", w.now); err != nil {
			return err
		}
		return gatedtest.RequeueTurn(tx, tn.ID, gatedtest.Requeue{Attempt: true, Problem: "broke"})
	})
	w.sawCase("a turn goes back to the queue")
}

func (w *simulation) wait(t *rapid.T) {
	w.now += rapid.SampledFrom([]int64{60_000, 60_000, 590_000, 1_200_002}).Draw(t, "wait")
}

func (w *simulation) engage(t *rapid.T) {
	p, folder := w.drawPlace(t), drawFolder(t)
	long := rapid.SampledFrom([]time.Duration{ttl, time.Minute + time.Millisecond, 3 * ttl}).Draw(t, "ttl")
	w.request(t, p, folder, long)
	w.model.engage(p, folder, w.now, long.Milliseconds())
}

func (w *simulation) disengage(t *rapid.T) {
	p := w.drawPlace(t)
	if w.model.holder(p, w.now) != (hold{}) {
		w.sawCase("engagement is ended on request")
	}
	w.request(t, p, "", 0)
	w.model.disengage(p, w.now)
}

func (w *simulation) request(t *rapid.T, p place, folder string, long time.Duration) {
	if w.down {
		t.Skip("routd is down")
	}
	_, err := w.tracker.Engage(context.Background(), p.chat, p.in, folder, long, func(*store.Tx, *engagement.State) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
}

// pin pins the chat to a group, or clears its pin.
func (w *simulation) pin(t *rapid.T) {
	p := w.drawPlace(t)
	if w.model.holder(p, w.now) != (hold{}) {
		w.sawCase("engagement is ended by a pin")
	}
	at := w.arrival(t, p.chat)
	w.write(t, func(tx *store.Tx) error {
		return gatedtest.PinGroup(tx, p.chat, rapid.SampledFrom([]string{"", "ops"}).Draw(t, "to"), at)
	})
	w.model.pin(p.chat, at)
}

func (w *simulation) stop(t *rapid.T) {
	if w.down {
		t.Skip("routd is down")
	}
	w.down = true
}

// check compares routd with the model, in every place and at the times at which something could
// change.
func (w *simulation) check(t *rapid.T) {
	w.now += 2 // later than all events so far
	if w.down {
		return
	}
	snapshot := w.tracker.Snapshot()
	for _, p := range w.places {
		for _, at := range w.times(p) {
			want := w.model.holder(p, at).folder
			if got := snapshot.Engaged(context.Background(), p.chat, p.in, at); got != want {
				t.Fatalf("%v at %+d: %q is engaged, want %q\n%+v", p, at-w.now, got, want, w.model.history(p))
			}
		}
		w.count(p)
	}
	if snapshot.Err() != nil {
		t.Fatal(snapshot.Err())
	}
}

func (w *simulation) times(p place) []int64 {
	history := w.model.history(p)
	at := []int64{w.now, w.now + 1, w.now - 60_001, w.now - 1_200_001, w.now + ttl.Milliseconds() - 2, history.until - 1, history.until}
	for _, c := range history.mentions {
		at = append(at, c.since-1, c.since, c.over+1)
	}
	return at
}

func (w *simulation) count(p place) {
	history, by := w.model.history(p), w.model.holder(p, w.now)
	switch {
	case by == hold{} && history.until != 0 && w.now >= history.until && history.window.since > w.model.cut(p):
		w.sawCase("a window is over")
	case by == hold{}:
	case by == history.window:
		w.sawCase("a window is open")
	default:
		w.sawCase("a claim is in force")
	}
	if by.folder != "" && history.window.folder != "" && by.folder != history.window.folder && w.now < history.until {
		w.sawCase("a claim takes a place from another folder's window")
	}
}

// read makes routd read the deliveries, store makes it store them.
func (w *simulation) read(t *rapid.T)  { w.routd(t, w.tracker.CatchUp) }
func (w *simulation) store(t *rapid.T) { w.routd(t, w.tracker.Store) }

func (w *simulation) routd(t *rapid.T, do func(context.Context) error) {
	if w.down {
		t.Skip("routd is down")
	}
	if err := do(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (w *simulation) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"mention": w.mention, "mention again": w.mention, "message": w.message, "message again": w.message, "join": w.join, "read": w.read, "store": w.store,
		"delegate": w.delegate, "broadcast": w.broadcast,
		"say": w.say, "conclude": w.conclude, "conclude again": w.conclude, "silence": w.silence, "post": w.post,
		"fail": w.fail, "cancel": w.cancel, "requeue": w.requeue,
		"deliver": w.deliver, "deliver again": w.deliver, "deliver more": w.deliver, "deliver even more": w.deliver,
		"wait": w.wait, "pin": w.pin, "": w.check,
	}
}

// run runs rounds of about thirty steps.
func (w *simulation) run(t *rapid.T, actions map[string]func(*rapid.T), rounds int) {
	for range rounds {
		t.Repeat(actions)
	}
}

// requireSeen fails the test if the simulations met a case too seldom to prove anything. Under
// -short rapid makes a fifth of the checks, half as long: too few for these counts.
func requireSeen(t *testing.T, seen map[string]int, wanted ...string) {
	t.Helper()
	t.Log(seen)
	if testing.Short() || explores() {
		return
	}
	for _, what := range wanted {
		if seen[what] < 5 {
			t.Errorf("%s: only %d times", what, seen[what])
		}
	}
}
