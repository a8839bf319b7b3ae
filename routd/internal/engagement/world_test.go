package engagement_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/routd/internal/engagement"
)

// ttl is odd, and so are the times at which people write; all else happens at even times. So no
// two of them ever coincide, where nothing says what should come of it.
const ttl = 20*time.Minute + time.Millisecond

// world is a database in which gated and the adapters work, beside the model that is told what
// they do.
type world struct {
	st     *store.Store
	number int
	ledger *engagement.Ledger
	down   bool // nobody asks routd
	now    int64
	model  *model
	places []place
	turns  []*turn
	out    []*reply
	last   map[string]int64 // when somebody wrote last, by chat
	shown  map[place]int64  // when something was delivered last
	reach  map[string]int   // how often the interesting happened
}

type turn struct {
	*msg.Turn
	place
	speaks string   // for whom its answers count
	claim  *mention // nil if it has none
	open   bool
}

// reply is an outbound row. Only some count as answers.
type reply struct {
	id      int64
	turn    *turn
	answers bool
	claimed bool
	parts   []msg.OutState
}

func newWorld(t *rapid.T, st *store.Store, reach map[string]int) *world {
	reach["worlds"]++
	number := reach["worlds"]
	a, b := fmt.Sprintf("telegram:-%d", number), fmt.Sprintf("slack:C%d", number)
	w := &world{
		st: st, number: number, now: 1_800_000_000_000, model: newModel(ttl.Milliseconds()), places: []place{{a, ""}, {a, "33"}, {b, ""}},
		last: map[string]int64{}, shown: map[place]int64{}, reach: reach,
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

func (w *world) write(t *rapid.T, fn func(*store.Tx) error) {
	if err := w.st.Write(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func (w *world) restart(t *rapid.T) {
	ledger, err := engagement.Open(t.Context(), w.st, ttl, func() time.Time { return time.UnixMilli(w.now) })
	if err != nil {
		t.Fatal(err)
	}
	w.ledger, w.down = ledger, false
}

func (w *world) reached(what string) { w.reach[what]++ }

func (w *world) drawPlace(t *rapid.T) place { return rapid.SampledFrom(w.places).Draw(t, "place") }

func drawFolder(t *rapid.T) string {
	return rapid.SampledFrom([]string{"eng", "eng", "ops"}).Draw(t, "folder")
}

// arrival is when something came that is decided now: a while ago, but not before what was
// decided earlier.
func (w *world) arrival(t *rapid.T, chat string) int64 {
	ago := rapid.SampledFrom([]int64{0, 0, 0, 2000, 600_000}).Draw(t, "arrived before")
	w.last[chat] = max(w.now-ago-1, w.last[chat]+2)
	return w.last[chat]
}

// mention fires a turn that claims its place, message one that does not.
func (w *world) mention(t *rapid.T) { w.fire(t, msg.VerbMention) }
func (w *world) message(t *rapid.T) { w.fire(t, msg.VerbMessage) }

func (w *world) fire(t *rapid.T, verb string) {
	p, folder := w.drawPlace(t), drawFolder(t)
	w.notTooMany(t, p)
	row := &msg.Message{ChatJID: p.chat, Direction: msg.In, Verb: verb, ThreadID: p.in, ReceivedAt: w.arrival(t, p.chat)}
	tn := &turn{place: p, speaks: folder, Turn: &msg.Turn{
		Kind: msg.Conversation, Folder: folder, ChatJID: p.chat, ThreadID: p.in, Place: p.in, ClaimsEngagement: verb == msg.VerbMention,
	}}
	if tn.ClaimsEngagement {
		// What was delivered before anybody knew of the mention does not count for it.
		row.ReceivedAt = max(row.ReceivedAt, w.shown[p]+1)
		w.last[p.chat] = max(row.ReceivedAt, w.last[p.chat])
		tn.claim = w.model.came(p, hold{folder, row.ReceivedAt})
	}
	w.begin(t, tn, row)
}

// begin stores a row and the turn that it fires, as gated does.
func (w *world) begin(t *rapid.T, tn *turn, row *msg.Message) {
	tn.CreatedAt, tn.Topic = w.now, fmt.Sprintf("#t%d-%d", w.number, len(w.turns))
	w.write(t, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(row); err != nil {
			return err
		}
		tn.TriggerMessageID = row.ID
		if err := tx.PutTurn(tn.Turn, 0); err != nil {
			return err
		}
		return tx.Decide(row.ID, store.Decision{
			Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: tn.Folder, TurnID: tn.ID, ThreadID: tn.ThreadID,
		}, w.now)
	})
	tn.open = true
	w.turns = append(w.turns, tn)
}

// notTooMany keeps below the number of claims that are looked at. Those that are not are older
// than 32 others, which gated has judged before: rows come to be judged in their order.
func (w *world) notTooMany(t *rapid.T, p place) {
	if len(w.model.talk(p).mentions) >= 32 {
		t.Skip("there are enough mentions")
	}
}

// delegate hands a turn on to a group below: that one answers in the same place, for the first.
func (w *world) delegate(t *rapid.T) {
	root := w.drawTurn(t)
	w.notTooMany(t, root.place)
	tn := &turn{place: root.place, speaks: root.speaks, Turn: &msg.Turn{
		Kind: msg.Delegated, Folder: root.Folder + "/kid", ChatJID: root.chat, ThreadID: root.in, Place: root.in,
		ClaimsEngagement: root.ClaimsEngagement, RootTurnID: root.Root(), Depth: 1,
	}}
	if root.claim != nil {
		tn.claim = w.model.came(root.place, root.claim.hold)
	}
	w.begin(t, tn, &msg.Message{ChatJID: "group:" + tn.Folder, Direction: msg.In, ReceivedAt: w.now})
}

// broadcast posts into a place what nobody there has asked for.
func (w *world) broadcast(t *rapid.T) {
	p, folder := w.drawPlace(t), drawFolder(t)
	w.begin(t, &turn{place: p, Turn: &msg.Turn{
		Kind: msg.Broadcast, Folder: folder, ChatJID: p.chat, ThreadID: p.in, Place: p.in,
	}}, &msg.Message{ChatJID: "group:" + folder, Direction: msg.In, ReceivedAt: w.now})
}

// drawTurn is one that is under way.
func (w *world) drawTurn(t *rapid.T) *turn {
	var open []*turn
	for _, tn := range w.turns {
		if tn.open {
			open = append(open, tn)
		}
	}
	if len(open) == 0 {
		t.Skip("no turn is under way")
	}
	return open[rapid.IntRange(0, len(open)-1).Draw(t, "turn")]
}

// run has an agent work on a turn.
func (w *world) run(t *rapid.T, tn *turn) {
	now, err := w.st.Turn(t.Context(), tn.ID)
	if err != nil {
		t.Fatal(err)
	}
	if tn.Turn = now; now.State != msg.TurnQueued {
		return
	}
	run := &msg.Run{Folder: tn.Folder, Topic: tn.Topic, ChatJID: tn.chat, Runtime: "process", StartedAt: w.now}
	w.write(t, func(tx *store.Tx) error { return tx.StartRun(run, tn.ID) })
	tn.RunID = run.ID
}

// answer is a frame, silence if the text is empty.
func (w *world) answer(t *rapid.T, tn *turn, text string, final bool) {
	w.run(t, tn)
	w.write(t, func(tx *store.Tx) error {
		return tx.AnswerTurn(store.Reply{RunID: tn.RunID, TurnID: tn.ID, Text: text, Final: final}, w.now)
	})
	if text != "" {
		rows, err := w.st.TurnReplies(t.Context(), tn.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.said(rows[len(rows)-1].ID, tn, tn.speaks != "")
	}
	if final {
		w.ended(tn)
	}
}

func (w *world) say(t *rapid.T)      { w.answer(t, w.drawTurn(t), "more follows", false) }
func (w *world) conclude(t *rapid.T) { w.answer(t, w.drawTurn(t), "this is it", true) }
func (w *world) silence(t *rapid.T)  { w.answer(t, w.drawTurn(t), "", true) }

func (w *world) said(id int64, tn *turn, answers bool) {
	if answers && tn.claim != nil {
		tn.claim.unsent++
	}
	w.out = append(w.out, &reply{id: id, turn: tn, answers: answers})
}

func (w *world) ended(tn *turn) {
	tn.open = false
	if tn.claim == nil {
		return
	}
	tn.claim.working = false
	if tn.claim.settle(w.now); tn.claim.over == w.now {
		w.reached("a claim is dropped with its turn")
	}
}

// post writes an outbound row beside the frames of a turn, or without one.
func (w *world) post(t *rapid.T) {
	source := rapid.SampledFrom([]string{msg.SourceTool, msg.SourceTool, msg.SourceNotice, msg.SourceCommand, "reminder", "broadcast"}).Draw(t, "source")
	row := &msg.Message{Direction: msg.Out, Source: source, OutState: msg.OutQueued, Content: "x"}
	tn := &turn{place: w.drawPlace(t)}
	if rapid.Bool().Draw(t, "of a turn") {
		tn = w.drawTurn(t)
		row.TurnID = tn.ID
	}
	row.ChatJID, row.ThreadID = tn.chat, tn.in
	w.write(t, func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err })
	w.said(row.ID, tn, source == msg.SourceTool && tn.speaks != "")
}

// fail ends a turn that its agent could not answer, cancel one that somebody stopped; requeue
// has it begin again.
func (w *world) fail(t *rapid.T) {
	tn := w.drawTurn(t)
	w.write(t, func(tx *store.Tx) error {
		return tx.FinishTurn(tn.Turn, msg.TurnFailed, msg.ReasonAgentError, "broke", w.now)
	})
	w.ended(tn)
}

func (w *world) cancel(t *rapid.T) {
	tn := w.drawTurn(t)
	w.write(t, func(tx *store.Tx) error { return tx.CancelTurn(tn.ID, msg.ReasonCancelled, w.now) })
	w.out = slices.DeleteFunc(w.out, func(r *reply) bool {
		withdrawn := r.turn == tn && !r.claimed
		if withdrawn && r.answers && tn.claim != nil {
			tn.claim.unsent--
		}
		return withdrawn
	})
	w.ended(tn)
}

func (w *world) requeue(t *rapid.T) {
	tn := w.drawTurn(t)
	w.write(t, func(tx *store.Tx) error {
		if err := tx.EndRun(tn.RunID, "broke", w.now); err != nil {
			return err
		}
		return tx.RequeueTurn(tn.ID, true, "broke", w.now+5000)
	})
	w.reached("a turn goes back to the queue")
}

// deliver takes an outbound row one step on: it is claimed, or its next part comes to an end.
func (w *world) deliver(t *rapid.T) {
	if len(w.out) == 0 {
		t.Skip("nothing to deliver")
	}
	r := w.out[rapid.IntRange(0, len(w.out)-1).Draw(t, "reply")]
	if !r.claimed {
		parts := rapid.IntRange(1, 2).Draw(t, "parts")
		w.write(t, func(tx *store.Tx) error { return tx.ClaimOutbound(r.id, parts, w.now) })
		r.claimed = true
		if rapid.Bool().Draw(t, "slowly") {
			return
		}
	}
	w.sendPart(t, r)
}

func (w *world) sendPart(t *rapid.T, r *reply) {
	state := rapid.SampledFrom([]msg.OutState{msg.OutSent, msg.OutSent, msg.OutAmbiguous, msg.OutFailed, msg.OutQueued}).Draw(t, "becomes")
	parts, err := w.st.Deliveries(t.Context(), r.id)
	if err != nil {
		t.Fatal(err)
	}
	done := len(r.parts)
	part := parts[done]
	part.State = state
	if state != msg.OutQueued { // to be tried again
		r.parts = append(r.parts, state)
	}
	over := state == msg.OutFailed || len(r.parts) == len(parts)
	w.write(t, func(tx *store.Tx) error {
		if err := tx.PutDelivery(part, w.now); err != nil || !over {
			return err
		}
		return tx.SettleOutbound(r.id, state, "")
	})
	w.told(r, state, over)
}

// told tells the model what became of a part.
func (w *world) told(r *reply, state msg.OutState, over bool) {
	p := r.turn.place
	if r.answers && (state == msg.OutSent || state == msg.OutAmbiguous) {
		w.countDelivery(p, r.turn.speaks, state)
		w.model.delivered(p, r.turn.speaks, w.now)
		w.shown[p] = w.now
	}
	if !over {
		return
	}
	w.out = slices.DeleteFunc(w.out, func(other *reply) bool { return other == r })
	if r.answers && r.turn.claim != nil {
		r.turn.claim.unsent--
		r.turn.claim.settle(w.now)
	}
}

func (w *world) countDelivery(p place, folder string, state msg.OutState) {
	by := w.model.holder(p, w.now)
	switch {
	case by.folder != folder:
		w.reached("a delivery engages nobody")
	case by == w.model.talk(p).window:
		w.reached("a delivery slides a window")
	default:
		w.reached("a delivery engages: " + string(state))
	}
	if w.down {
		w.reached("a delivery while routd is down")
	}
}

func (w *world) wait(t *rapid.T) {
	w.now += rapid.SampledFrom([]int64{60_000, 60_000, 590_000, 1_200_002}).Draw(t, "wait")
}

func (w *world) engage(t *rapid.T) {
	p, folder := w.drawPlace(t), drawFolder(t)
	long := rapid.SampledFrom([]time.Duration{ttl, time.Minute + time.Millisecond, 3 * ttl}).Draw(t, "ttl")
	w.word(t, p, folder, long)
	w.model.engage(p, folder, w.now, long.Milliseconds())
}

func (w *world) disengage(t *rapid.T) {
	p := w.drawPlace(t)
	if w.model.holder(p, w.now) != (hold{}) {
		w.reached("engagement is ended by word")
	}
	w.word(t, p, "", 0)
	w.model.disengage(p, w.now)
}

func (w *world) word(t *rapid.T, p place, folder string, long time.Duration) {
	if w.down {
		t.Skip("routd is down")
	}
	_, err := w.ledger.Engage(context.Background(), p.chat, p.in, folder, long, func(*engagement.State) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
}

// pin acts on a token that pins the chat, or clears its pin.
func (w *world) pin(t *rapid.T) {
	p := w.drawPlace(t)
	if w.model.holder(p, w.now) != (hold{}) {
		w.reached("engagement is ended by a pin")
	}
	at := w.arrival(t, p.chat)
	w.write(t, func(tx *store.Tx) error {
		return tx.PinGroup(p.chat, rapid.SampledFrom([]string{"", "ops"}).Draw(t, "to"), at)
	})
	w.model.pin(p.chat, at)
}

func (w *world) stop(t *rapid.T) {
	if w.down {
		t.Skip("routd is down")
	}
	w.down = true
}

// check asks routd about every place and the times at which something could change.
func (w *world) check(t *rapid.T) {
	w.now += 2 // than what happened before
	if w.down {
		return
	}
	view, err := w.ledger.View(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range w.places {
		for _, at := range w.times(p) {
			want := w.model.holder(p, at).folder
			if got := view.Engaged(t.Context(), p.chat, p.in, at); got != want {
				t.Fatalf("%v at %+d: %q is engaged, want %q\n%+v", p, at-w.now, got, want, w.model.talk(p))
			}
		}
		w.count(p)
	}
	if view.Err() != nil {
		t.Fatal(view.Err())
	}
}

func (w *world) times(p place) []int64 {
	talk := w.model.talk(p)
	at := []int64{w.now, w.now + 1, w.now - 60_001, w.now - 1_200_001, w.now + ttl.Milliseconds() - 2, talk.until - 1, talk.until}
	for _, c := range talk.mentions {
		at = append(at, c.since-1, c.since, c.over+1)
	}
	return at
}

func (w *world) count(p place) {
	talk, by := w.model.talk(p), w.model.holder(p, w.now)
	switch {
	case by == hold{} && talk.until != 0 && w.now >= talk.until && talk.window.since > w.model.cut(p):
		w.reached("a window is over")
	case by == hold{}:
	case by == talk.window:
		w.reached("a window is open")
	default:
		w.reached("a claim is in force")
	}
	if by.folder != "" && talk.window.folder != "" && by.folder != talk.window.folder && w.now < talk.until {
		w.reached("a claim takes a place from another folder's window")
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"mention": w.mention, "mention again": w.mention, "message": w.message, "delegate": w.delegate, "broadcast": w.broadcast,
		"say": w.say, "conclude": w.conclude, "conclude again": w.conclude, "silence": w.silence, "post": w.post,
		"fail": w.fail, "cancel": w.cancel, "requeue": w.requeue,
		"deliver": w.deliver, "deliver again": w.deliver, "deliver more": w.deliver, "deliver most": w.deliver,
		"wait": w.wait, "pin": w.pin, "": w.check,
	}
}

// live lets a world go through so many rounds of about thirty steps.
func (w *world) live(t *rapid.T, actions map[string]func(*rapid.T), rounds int) {
	for range rounds {
		t.Repeat(actions)
	}
}

// isReached fails the test if its worlds were too dull to prove anything.
func isReached(t *testing.T, reach map[string]int, wanted ...string) {
	t.Helper()
	for _, what := range wanted {
		if reach[what] < 5 {
			t.Errorf("%s: only %d times", what, reach[what])
		}
	}
	t.Log(reach)
}
