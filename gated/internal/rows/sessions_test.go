package rows_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	talk := func(topic, id string) {
		turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic = topic })
		run := gatedtest.Begun(t, s, turn)
		frame := gatedtest.Answer(run, turn, "ok")
		frame.SessionID = id
		gatedtest.StoreReply(t, s, frame, 300)
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRun(tx, run.ID, "", 400) })
	}
	talk("", "one")
	talk("#a", "two")
	talk("", "three")
	for topic, want := range map[string]string{"": "three", "#a": "two", "#b": ""} {
		if got := storetest.Must(s.Session(t.Context(), storetest.Folder, topic))(t); got != want {
			t.Errorf("topic %q: %q, want %q", topic, got, want)
		}
	}
	storetest.Write(t, s, func(tx *store.Tx) error { _, err := rows.EvictSession(tx, storetest.Folder, "", ""); return err })
	if got := storetest.Must(s.Session(t.Context(), storetest.Folder, ""))(t); got != "" {
		t.Errorf("evicted: %q", got)
	}
	if got := storetest.Must(s.Session(t.Context(), storetest.Folder, "#a"))(t); got != "two" {
		t.Errorf("another topic: %q", got)
	}
}

// A topic has one session for each agent, and the last of them is the topic's.
func TestSessions_OfSeveralAgents_AreKept(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	talk := func(agent, id string) int64 {
		turn := gatedtest.Queued(t, s)
		run := &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, Runtime: "process", Agent: agent, StartedAt: 200}
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.StartRun(tx, run, turn.ID) })
		frame := gatedtest.Answer(run, turn, "ok")
		frame.SessionID, frame.Agent = id, agent
		gatedtest.StoreReply(t, s, frame, 300)
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRun(tx, run.ID, "", 400) })
		return run.ID
	}
	check := func(when, topic, own, codex string) {
		t.Helper()
		got := []string{
			storetest.Must(s.Session(t.Context(), storetest.Folder, ""))(t), storetest.Must(rows.AgentSession(t.Context(), s.Reader, storetest.Folder, "", ""))(t), storetest.Must(rows.AgentSession(t.Context(), s.Reader, storetest.Folder, "", "codex"))(t),
		}
		differ(t, when, got, []string{topic, own, codex})
	}
	talk("", "d1")
	check("before", "d1", "d1", "")
	talk("codex", "c1")
	check("switched", "c1", "d1", "c1")
	last := talk("", "d2")
	check("switched back", "d2", "d2", "c1")
	if agent, known, err := rows.LastAgent(t.Context(), s.Reader, storetest.Folder, "", last); agent != "codex" || !known || err != nil {
		t.Errorf("before the last run answered %q, %v, %v", agent, known, err)
	}
	var evicted []bool
	storetest.Write(t, s, func(tx *store.Tx) error {
		for _, agent := range []string{"codex", "codex"} {
			was, err := rows.EvictSession(tx, storetest.Folder, "", agent)
			if err != nil {
				return err
			}
			evicted = append(evicted, was)
		}
		return nil
	})
	check("evicted", "d2", "d2", "")
	if diff := cmp.Diff([]bool{true, false}, evicted); diff != "" {
		t.Error(diff)
	}
	talk("codex", "c2")
	storetest.Write(t, s, func(tx *store.Tx) error { _, err := rows.ResetSession(tx, storetest.Folder, "", 1); return err })
	check("reset", "", "", "")
}

func TestSessionLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	second := gatedtest.Piped(t, s, run)
	for range 2 { // the turn is made of three rows
		m := storetest.Inbound(t, s, storetest.Chat, "more")
		storetest.Decide(t, s, m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: first.ID})
	}
	part := gatedtest.Answer(run, first, "part")
	part.Final, part.SessionID = false, "one"
	gatedtest.StoreReply(t, s, part, 300)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, first, "rest"), 310)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, first, "extra"), 315)
	storetest.Decide(t, s, second.TriggerMessageID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder, TurnID: second.ID})
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, second, "ok"), 320)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRun(tx, run.ID, "", 400) })
	next := gatedtest.Begun(t, s, gatedtest.Queued(t, s)) // begins with the stored session
	elsewhere := gatedtest.Begun(t, s, gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic = "#else" }))

	old := rows.PastSession{StartedAt: 200, EndedAt: 400, SessionID: "one", Result: "ok", MessageCount: 4}
	open := rows.PastSession{StartedAt: 200, SessionID: "one"}
	for _, tt := range []struct {
		name      string
		beforeRun int64
		limit     int
		want      []rows.PastSession
	}{
		{"of the first run", run.ID, 5, nil},
		{"of the second run", next.ID, 5, []rows.PastSession{old}},
		{"of a third run", elsewhere.ID + 1, 5, []rows.PastSession{open, old}},
		{"the newest", elsewhere.ID + 1, 1, []rows.PastSession{open}},
	} {
		differ(t, tt.name, storetest.Must(rows.PastSessions(t.Context(), s.Reader, storetest.Folder, "", tt.beforeRun, tt.limit))(t), tt.want)
	}
}

func TestClaimSystemMessages_EndedTurn_ClaimsNone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 1); err != nil {
			return err
		}
		return tx.PutSystemMessage(storetest.Folder, "gated", "new_session", "", 1)
	})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClaimSystemMessages(tx, storetest.Folder, turn.ID) })
	if !storetest.Must(rows.ReadPromptFacts(t.Context(), s.Reader, &msg.Turn{Folder: storetest.Folder}, 0, 0))(t).SystemWaits {
		t.Error("the line is lost")
	}
}

func TestSystemMessages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	say := func(folder, event string) {
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutSystemMessage(folder, "gated", event, "body", 1) })
	}
	claim := func(turn *msg.Turn) {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClaimSystemMessages(tx, storetest.Folder, turn.ID) })
	}
	lines := func(turn *msg.Turn) (events []string) {
		t.Helper()
		for _, m := range storetest.Must(rows.TurnSystemMessages(t.Context(), s.Reader, turn.ID))(t) {
			if m.Origin != "gated" || m.Body != "body" || m.ID == 0 {
				t.Errorf("%+v", m)
			}
			events = append(events, m.Event)
		}
		return events
	}
	waits := func(want bool) {
		t.Helper()
		if got := storetest.Must(rows.ReadPromptFacts(t.Context(), s.Reader, &msg.Turn{Folder: storetest.Folder}, 0, 0))(t).SystemWaits; got != want {
			t.Errorf("lines wait: %v, want %v", got, want)
		}
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		differ(t, what, got, want)
	}
	first, second, third := gatedtest.Queued(t, s), gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	waits(false)
	say(storetest.Folder, "new_session")
	say("else", "not_ours")
	say(storetest.Folder, "new_day")
	waits(true)
	claim(first)
	waits(false)
	check("claimed", lines(first), "new_session", "new_day")

	// A retry has the same lines; those of a cancelled turn go to the next turn.
	say(storetest.Folder, "later")
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.RequeueTurn(tx, first.ID, rows.Requeue{Attempt: true, Problem: "broke"})
	})
	claim(second)
	check("of the retried turn", lines(first), "new_session", "new_day")
	check("of the next turn", lines(second), "later")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, first.ID, msg.ReasonCancelled, 1) })
	check("of the cancelled turn", lines(first))
	waits(true)
	claim(third)
	check("of the turn after it, in whose session the first line would be wrong", lines(third), "new_day")

	run := gatedtest.Begun(t, s, third)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, third, "ok"), 300)
	check("of the answered turn", lines(third))
	waits(false)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.FinishTurn(tx, second, msg.TurnFailed, msg.ReasonAgentError, "broke", 310)
	})
	waits(true)
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM system_messages`); n != 2 {
		t.Errorf("%d lines left, want the failed turn's and the other folder's", n)
	}
}

func TestSpend_ChatMoves_IsAddedToItsNextAddress(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, jid := range []string{"telegram:-5", "telegram:-1005"} {
		turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = jid })
		storetest.Write(t, s, func(tx *store.Tx) error {
			return rows.AddUsage(tx, turn.ID, agentproto.Usage{CostUSD: 0.5}, "2026-11-23")
		})
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.MoveChat("telegram:-5", "telegram:-1005", 1000) })
	got := storetest.Must(s.SpendChats(t.Context(), store.SpendList{From: "2026-11-23", To: "2026-11-23", Limit: 9}))(t)
	if want := []store.SpendRow{{Name: "telegram:-1005", Spend: store.Spend{Turns: 2, CostUSD: 1}}}; !cmp.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// budgets is a store with turns that were ended since a budget is used up.
type budgets struct {
	*testing.T
	*store.Store
}

var someDay = rows.BudgetScope{Folder: "acme", Day: "2026-11-23"}

// over is a turn of a group that was ended for a budget, that of the turn if none is given.
func (b budgets) over(folder string, scope rows.BudgetScope) *msg.Turn {
	b.Helper()
	turn := gatedtest.Queued(b.T, b.Store, func(turn *msg.Turn) { turn.Folder = folder })
	if scope.Day == "" {
		scope.Turn = turn.ID
	}
	storetest.Write(b.T, b.Store, func(tx *store.Tx) error { return rows.EndOverBudget(tx, turn, scope, 1.25, 1, 300) })
	return turn
}

func (b budgets) ask(turn *msg.Turn, scope rows.BudgetScope, usd float64) (a *msg.Ask) {
	b.Helper()
	storetest.Write(b.T, b.Store, func(tx *store.Tx) (err error) {
		a, err = rows.PutAsk(tx, turn, &rows.Question{AskID: scope.AskID(usd), Question: "on?", Options: []string{"Raise it", "No"},
			Who: msg.Who{Everyone: true}, Source: msg.SourceNotice, ExpiresAt: 1000}, 400)
		return err
	})
	return a
}

func (b budgets) answer(a *msg.Ask, option int) error {
	return b.Write(b.Context(), func(tx *store.Tx) error { return rows.AnswerAsk(tx, a.ID, option, "telegram:7", "", 500, 500) })
}

func (b budgets) want(raised map[rows.BudgetScope]float64, states map[*msg.Turn]msg.TurnState) {
	b.Helper()
	for scope, want := range raised {
		if got := storetest.Must(rows.Raised(b.Context(), b.Reader, scope))(b.T); got != want {
			b.Errorf("%+v was raised by %v, want %v", scope, got, want)
		}
	}
	for t, want := range states {
		if got := storetest.Turn(b.T, b.Store, t.ID); got.State != want {
			b.Errorf("turn %d is %s, want %s", got.ID, got.State, want)
		}
	}
}

func TestBudget_DayIsRaised_ItsTurnsAreQueuedAgainAndItsQuestionsEnd(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	dayBefore := rows.BudgetScope{Folder: "acme", Day: "2026-11-22"}
	first, second, other := b.over("acme", someDay), b.over("acme", someDay), b.over("other", rows.BudgetScope{Folder: "other", Day: someDay.Day})
	before, own := b.over("acme", dayBefore), b.over("acme", rows.BudgetScope{})
	byHand := gatedtest.Queued(t, b.Store, func(turn *msg.Turn) { turn.Folder = "acme" })
	storetest.Write(t, b.Store, func(tx *store.Tx) error { return rows.CancelTurn(tx, byHand.ID, msg.ReasonCancelled, 300) })
	here, elsewhere := b.ask(first, someDay, 1.5), b.ask(second, someDay, 1.5)
	ofTurn, ofOther, ofBefore := b.ask(own, rows.BudgetScope{Turn: own.ID}, 1), b.ask(other, someDay, 1.5), b.ask(before, dayBefore, 1.5)
	if err := b.answer(here, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.answer(here, 1); !errors.Is(err, store.ErrStale) {
		t.Errorf("answered twice: %v", err)
	}
	if err := b.answer(elsewhere, 1); !errors.Is(err, store.ErrStale) {
		t.Errorf("the same question in another chat: %v", err)
	}
	b.want(map[rows.BudgetScope]float64{someDay: 1.5, dayBefore: 0, {Turn: own.ID}: 0, {Folder: "other", Day: someDay.Day}: 0},
		map[*msg.Turn]msg.TurnState{first: msg.TurnQueued, second: msg.TurnQueued, other: msg.TurnCancelled, before: msg.TurnCancelled, own: msg.TurnCancelled, byHand: msg.TurnCancelled})
	for _, a := range []*msg.Ask{ofTurn, ofOther, ofBefore} {
		if got := storetest.Must(b.Ask(t.Context(), a.ID))(t); got.State != msg.AskOpen {
			t.Errorf("another question is %s", got.State)
		}
	}
	if rows := storetest.Must(b.Audit(t.Context(), store.AuditQuery{What: "raise budget", Limit: 9}))(t); len(rows) != 1 ||
		rows[0].Who != "telegram:7" || rows[0].Detail != "group acme on 2026-11-23 by $1.50" {
		t.Errorf("audit %+v", rows)
	}
}

func TestBudget_TurnIsRaised_IsQueuedAgain(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	turn, other := b.over("acme", rows.BudgetScope{}), b.over("acme", rows.BudgetScope{})
	scope := rows.BudgetScope{Turn: turn.ID}
	if err := b.answer(b.ask(turn, scope, 0.5), 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[rows.BudgetScope]float64{scope: 0.5, {Turn: other.ID}: 0}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued, other: msg.TurnCancelled})
	storetest.Write(t, b.Store, func(tx *store.Tx) error { return rows.EndOverBudget(tx, turn, scope, 2, 1.5, 600) })
	if err := b.answer(b.ask(turn, scope, 0.25), 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[rows.BudgetScope]float64{scope: 0.75}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued})
}

// A turn that an operator retries is asked about again, and one whose question is open is not.
func TestBudget_NoIsAnswered_NextQuestionIsANewOne(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	turn := b.over("acme", rows.BudgetScope{})
	scope := rows.BudgetScope{Turn: turn.ID}
	first := b.ask(turn, scope, 0.5)
	if again := b.ask(turn, scope, 0.5); again.ID != first.ID {
		t.Error("an open question is asked again")
	}
	if err := b.answer(first, 2); err != nil {
		t.Fatal(err)
	}
	b.want(map[rows.BudgetScope]float64{scope: 0}, map[*msg.Turn]msg.TurnState{turn: msg.TurnCancelled})
	second := b.ask(turn, scope, 0.5)
	if second.ID == first.ID || second.State != msg.AskOpen {
		t.Errorf("the next question is %+v", second)
	}
	if err := b.answer(second, 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[rows.BudgetScope]float64{scope: 0.5}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued})
}

// voiceTurn stores a voice note beside a picture, and a turn that waits for its transcript until 60000.
func voiceTurn(t *testing.T, s *store.Store) (m *msg.Message, turn *msg.Turn) {
	t.Helper()
	m = &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Sender: "telegram:1", Timestamp: 1, ReceivedAt: 1, Source: "teled", Attachments: []msg.Attachment{
		{Name: "a.png", MIME: "image/png", Path: "media/1"}, {Name: "v.ogg", MIME: "audio/ogg", Path: "media/2", Duration: 3}, {Name: "lost.ogg", MIME: "audio/ogg", Error: "too large"},
	}}
	storetest.Write(t, s, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		turn = &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: m.ChatJID, TriggerMessageID: m.ID, State: msg.TurnQueued, CreatedAt: 1, WaitsFor: msg.WaitsFiles, NotBefore: 60_000}
		if _, err := rows.PutTurn(tx, turn, 5); err != nil {
			return err
		}
		return rows.WantTranscripts(tx, m, m.ID, turn, 1)
	})
	return m, turn
}

func wantedTranscripts(t *testing.T, s *store.Store) []rows.WantedTranscript {
	t.Helper()
	all, err := rows.WantedTranscripts(t.Context(), s.Reader, 10)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTranscripts_HeldOnce_TurnStartsThen(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m, turn := voiceTurn(t, s)
	all := wantedTranscripts(t, s)
	want := []rows.WantedTranscript{{ID: 1, MessageID: m.ID, TurnID: turn.ID, N: 2, Folder: "main", TurnCreated: 1, TurnWaits: true, File: m.Attachments[1]}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Fatalf("the audio file that can be read (-want +got):\n%s", diff)
	}
	for _, until := range []int64{90_000, 120_000} { // the first time holds
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.HoldForTranscript(tx, all[0].ID, turn.ID, until, 2) })
	}
	if got := wantedTranscripts(t, s)[0].Until; got != 90_000 {
		t.Errorf("held until %d", got)
	}
	if got, err := s.Turn(t.Context(), turn.ID); err != nil || got.NotBefore != 90_000 {
		t.Errorf("the turn: %+v, %v", got, err)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndWait(tx, turn.ID, msg.WaitsFiles) })
	if got := wantedTranscripts(t, s); len(got) != 1 || got[0].TurnWaits {
		t.Errorf("after the end of the wait: %+v", got)
	}
}

func TestTranscripts_HeldEarlier_KeepsTheTimeOfFiles(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := voiceTurn(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.HoldForTranscript(tx, 1, turn.ID, 30_000, 2) })
	if got, err := s.Turn(t.Context(), turn.ID); err != nil || got.NotBefore != 60_000 {
		t.Errorf("the turn: %+v, %v", got, err)
	}
}

func TestTranscripts_End_IsStoredOnceCleanAndBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, problem string
		want          msg.Transcript
	}{
		"text":    {" a\xffb\x00c\n", "", msg.Transcript{Text: "a\uFFFDbc"}},
		"long":    {strings.Repeat("ä", rows.MaxTranscript), "", msg.Transcript{Text: strings.Repeat("ä", rows.MaxTranscript/2-2) + msg.CutMark}},
		"problem": {"half of it", "it failed", msg.Transcript{Error: "it failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			m, _ := voiceTurn(t, s)
			end := func(text, problem string) (stored bool) {
				storetest.Write(t, s, func(tx *store.Tx) (err error) { stored, err = rows.EndTranscript(tx, 1, text, problem, 5); return err })
				return stored
			}
			if !end(c.text, c.problem) || end("later", "") {
				t.Error("not stored once")
			}
			if err := s.FillTranscripts(t.Context(), []*msg.Message{m}); err != nil {
				t.Fatal(err)
			}
			differ(t, "got", m.Attachments[1].Transcript, &c.want)
			if m.Attachments[0].Transcript != nil || len(wantedTranscripts(t, s)) != 0 {
				t.Error("other files have transcripts, or one is still wanted")
			}
		})
	}
}

// A message may be answered by several turns, such as one that another replies to: it is transcribed once.
func TestTranscripts_WantedAgain_StaysAsItIs(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m, turn := voiceTurn(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { _, err := rows.EndTranscript(tx, 1, "words", "", 5); return err })
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.WantTranscripts(tx, m, m.ID, turn, 6) })
	if err := s.FillTranscripts(t.Context(), []*msg.Message{m}); err != nil || m.Attachments[1].Transcript.Text != "words" {
		t.Errorf("%+v, %v", m.Attachments[1].Transcript, err)
	}
}

func TestTranscripts_MessagePurged_IsDeletedWithIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m, turn := voiceTurn(t, s)
	var deleted int
	storetest.Write(t, s, func(tx *store.Tx) error {
		if _, err := rows.EndTranscript(tx, 1, "words", "", 2); err != nil {
			return err
		}
		if err := tx.Decide(m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}, 3); err != nil {
			return err
		}
		return tx.Exec(`UPDATE turns SET state = 'cancelled', ended_at = 4`)
	})
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		if _, err := rows.Purge(tx, rows.HistoryTurns, []int64{turn.ID}, 1000); err != nil {
			return err
		}
		deleted, err = rows.Purge(tx, rows.HistoryMessages, []int64{m.ID}, 1000)
		return err
	})
	if deleted != 1 {
		t.Fatalf("%d messages are deleted", deleted)
	}
	if err := s.FillTranscripts(t.Context(), []*msg.Message{m}); err != nil || m.Attachments[1].Transcript != nil {
		t.Errorf("%+v, %v", m.Attachments[1].Transcript, err)
	}
}
