package rows_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func permission(set ...func(*rows.Question)) *rows.Question {
	q := &rows.Question{
		AskID: "perm", Question: "Run Bash?", Detail: "rm -r x", Options: []string{"Allow once", "Deny"}, PayloadHash: "h1",
		Who: msg.Who{Senders: []string{"telegram:1"}, Label: "operators"}, Name: "Eng", ExpiresAt: 600_000,
	}
	for _, f := range set {
		f(q)
	}
	return q
}

// asked asks a question of a turn.
func asked(t testing.TB, s *store.Store, turn *msg.Turn, q *rows.Question, now int64) *msg.Ask {
	t.Helper()
	var a *msg.Ask
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		a, err = rows.PutAsk(tx, turn, q, now)
		return err
	})
	return a
}

// showAsk settles an outbound row as sent.
func showAsk(t testing.TB, s *store.Store, id int64, platformID string) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(id, 1, 100); err != nil {
			return err
		}
		if err := tx.PutDelivery(store.Delivery{MessageID: id, State: msg.OutSent, PlatformID: platformID}, 100); err != nil {
			return err
		}
		return tx.SettleOutbound(id, msg.OutSent, platformID)
	})
}

// working is a run at work on a turn.
func working(t testing.TB, s *store.Store) (*msg.Run, *msg.Turn) {
	t.Helper()
	turn := gatedtest.Queued(t, s)
	return gatedtest.Begun(t, s, turn), turn
}

func answered(s *store.Store, t testing.TB, id int64, option int, now int64) error {
	return s.Write(t.Context(), func(tx *store.Tx) error { return rows.AnswerAsk(tx, id, option, "telegram:1", "Ann_", now, now) })
}

func TestAsk_Answered_OnceWithEditOfItsMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	run, turn := working(t, s)
	a := asked(t, s, turn, permission(), 1000)
	m := storetest.Must(s.Message(t.Context(), a.MessageID))(t)
	want := "**Eng asks for permission:** Run Bash?\n\n```\nrm -r x\n```\n\n1. Allow once\n2. Deny\n\n" +
		"_Only operators may answer this. Choose one, or reply with its number, within 9 minutes: no answer counts as no._"
	if m.Content != want || m.TurnID != turn.ID || m.ThreadID != turn.ThreadID || m.ReplyToID != turn.ReplyTo || m.OutState != msg.OutQueued {
		t.Errorf("row %+v", m)
	}
	if p := storetest.Must(s.Progress(t.Context(), turn.ID))(t); p == nil || p.State != agentproto.StatusRequiresAction {
		t.Errorf("progress %+v", p)
	}
	if waits := storetest.Must(rows.RunAsking(t.Context(), s.Reader, run.ID))(t); !cmp.Equal(waits, []int64{turn.ID}) {
		t.Errorf("the run waits for %v", waits)
	}
	showAsk(t, s, a.MessageID, "77")
	if found := storetest.Must(factrows.AskOfTarget(t.Context(), s.Reader, storetest.Chat, "77"))(t); found == nil || found.ID != a.ID {
		t.Errorf("message 77 shows %+v", found)
	}
	for _, option := range []int{0, 3} {
		if err := answered(s, t, a.ID, option, 2000); !errors.Is(err, store.ErrStale) {
			t.Errorf("option %d: %v", option, err)
		}
	}
	if err := answered(s, t, a.ID, 1, 2000); err != nil {
		t.Fatal(err)
	}
	if err := answered(s, t, a.ID, 2, 2001); !errors.Is(err, store.ErrStale) {
		t.Errorf("a second answer: %v", err)
	}
	got := storetest.Must(s.Ask(t.Context(), a.ID))(t)
	if got.State != msg.AskAnswered || got.Option != "Allow once" || got.AnsweredBy != "telegram:1" || got.EndedAt != 2000 {
		t.Errorf("stored %+v", got)
	}
	edits := storetest.Must(s.DerivedFrom(t.Context(), a.MessageID))(t)
	if len(edits) != 1 || edits[0].Kind != msg.KindEdit || edits[0].Content != "**Eng asks for permission:** Run Bash?\n\n```\nrm -r x\n```\n\n**Allow once** — answered by Ann\\_" {
		t.Fatalf("edits %+v", edits)
	}
	if p := storetest.Must(s.Progress(t.Context(), turn.ID))(t); p.State != agentproto.StatusRunning {
		t.Errorf("afterwards progress %+v", p)
	}
}

func TestAsk_AskedAgain_SameGetsStoredAnswerAnotherIsNew(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	first := asked(t, s, turn, permission(), 1000)
	showAsk(t, s, first.MessageID, "77")
	if err := answered(s, t, first.ID, 1, 2000); err != nil {
		t.Fatal(err)
	}
	if again := asked(t, s, turn, permission(), 3000); again.ID != first.ID || again.State != msg.AskAnswered || again.Option != "Allow once" {
		t.Errorf("the same question again: %+v", again)
	}
	var ids []int64
	for i, change := range []func(*rows.Question){
		func(q *rows.Question) { q.PayloadHash = "h2" },
		func(q *rows.Question) { q.Detail = "rm -r y" },
		func(q *rows.Question) { q.Options = []string{"Allow", "Deny"} },
	} {
		other := asked(t, s, turn, permission(change), 3000)
		if other.State != msg.AskOpen || other.AskID != fmt.Sprintf("perm~%d", i+2) {
			t.Errorf("another question: %+v", other)
		}
		if again := asked(t, s, turn, permission(change), 3001); again.ID != other.ID {
			t.Errorf("asked again it is %+v", again)
		}
		ids = append(ids, other.ID)
	}
	if len(ids) != 3 || ids[0] == ids[1] || ids[1] == ids[2] {
		t.Errorf("rows %v", ids)
	}
}

// A turn that is retried, and asks again, is seen to wait.
func TestAsk_AskedAgainAfterARetry_TurnIsSeenToWait(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	run, turn := working(t, s)
	first := asked(t, s, turn, permission(), 1000)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(rows.RequeueTurn(tx, turn.ID, rows.Requeue{}), rows.CloseRun(tx, run.ID, 1500))
	})
	if p := storetest.Must(s.Progress(t.Context(), turn.ID))(t); p != nil {
		t.Errorf("progress of the queued turn: %+v", p)
	}
	gatedtest.Begun(t, s, turn)
	if again := asked(t, s, turn, permission(), 2000); again.ID != first.ID {
		t.Errorf("asked again it is %+v", again)
	}
	if p := storetest.Must(s.Progress(t.Context(), turn.ID))(t); p == nil || p.State != agentproto.StatusRequiresAction {
		t.Errorf("progress %+v", p)
	}
}

func TestAsk_Limits_AreKept(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	ask := func(id string, set ...func(*rows.Question)) (a *msg.Ask, err error) {
		err = s.Write(t.Context(), func(tx *store.Tx) error {
			a, err = rows.PutAsk(tx, turn, permission(append(set, func(q *rows.Question) { q.AskID = id })...), 1000)
			return err
		})
		return a, err
	}
	if _, err := ask("x", func(q *rows.Question) { q.Who = msg.Who{Label: "operators"} }); !errors.Is(err, rows.ErrNoUser) {
		t.Errorf("no user may answer: %v", err)
	}
	for i := range agentproto.MaxAsks {
		a, err := ask(fmt.Sprint(i))
		if err != nil {
			t.Fatal(i, err)
		}
		if i >= agentproto.MaxOpenAsks-1 { // one is open less
			if _, err := ask("one more"); !errors.Is(err, rows.ErrTooManyAsks) {
				t.Fatalf("after %d: %v", i+1, err)
			}
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.ExpireAsk(tx, a.ID, 2000) })
		}
	}
	if _, err := ask("one more"); !errors.Is(err, rows.ErrTooManyAsks) {
		t.Errorf("one more than a turn may ask: %v", err)
	}
	if a, err := ask(msg.AskBudget); err != nil || a.State != msg.AskOpen {
		t.Errorf("gated's own question: %+v, %v", a, err)
	}
}

func TestAsk_Expiry_EndsItOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	a := asked(t, s, turn, permission(), 1000)
	showAsk(t, s, a.MessageID, "77")
	for now, due := range map[int64]int{1000: 0, 599_999: 0, 600_000: 1, 999: 0, -59_000: 0, -59_001: 1} { // at last the clock was set back
		if got := storetest.Must(rows.AsksDue(t.Context(), s.Reader, now))(t); len(got) != due {
			t.Errorf("at %d %d questions are due, want %d", now, len(got), due)
		}
	}
	if err := answered(s, t, a.ID, 1, 600_000); !errors.Is(err, store.ErrStale) {
		t.Errorf("a late answer: %v", err)
	}
	for range 2 {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ExpireAsk(tx, a.ID, 600_000) })
	}
	edits := storetest.Must(s.DerivedFrom(t.Context(), a.MessageID))(t)
	if len(edits) != 1 || !strings.HasSuffix(edits[0].Content, "\n\nExpired: no answer within 9 minutes, which counts as no.") {
		t.Errorf("edits %+v", edits)
	}
}

func TestAsk_Retry_QueuesTheFailedTurnOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	run, turn := working(t, s)
	fail := func(run *msg.Run) *msg.Ask {
		storetest.Write(t, s, func(tx *store.Tx) error {
			now := storetest.Turn(t, s, turn.ID)
			return errors.Join(rows.FinishTurn(tx, now, msg.TurnFailed, msg.ReasonAgentError, "exit 1", 1500), gatedtest.EndRun(tx, run.ID, "", 1500))
		})
		return asked(t, s, turn, &rows.Question{AskID: msg.AskRetry, Question: "Sorry, it_failed.", Options: []string{msg.RetryLabel},
			Who: msg.Who{Senders: []string{"telegram:1"}, Label: "operators and the sender"}, Source: msg.SourceNotice, ExpiresAt: 600_000}, 2000)
	}
	edit := func(a *msg.Ask) string {
		edits := storetest.Must(s.DerivedFrom(t.Context(), a.MessageID))(t)
		if len(edits) != 1 {
			t.Fatalf("edits %+v", edits)
		}
		return edits[0].Content
	}
	first := fail(run)
	showAsk(t, s, first.MessageID, "77")
	m := storetest.Must(s.Message(t.Context(), first.MessageID))(t)
	const text = "Sorry, it\\_failed."
	if want := text + "\n\n_Press **Try again**, or reply with these words, within 9 minutes._"; m.Content != want || m.Source != msg.SourceNotice {
		t.Errorf("row %+v, want %q", m, want)
	}
	if open := storetest.Must(factrows.ChatAsks(t.Context(), s.Reader, turn.ChatJID, turn.ThreadID))(t); len(open) != 0 {
		t.Errorf("texts may answer %+v", open)
	}
	if err := answered(s, t, first.ID, 1, 2500); err != nil {
		t.Fatal(err)
	}
	if err := answered(s, t, first.ID, 1, 2600); !errors.Is(err, store.ErrStale) {
		t.Errorf("a second press: %v", err)
	}
	if now := storetest.Turn(t, s, turn.ID); now.State != msg.TurnQueued {
		t.Errorf("the turn is %s", now.State)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM audit WHERE who = 'telegram:1' AND what = 'retry turn'`); n != 1 {
		t.Errorf("%d entries in the audit", n)
	}
	if got := edit(first); got != text+"\n\nRetried by Ann\\_." {
		t.Errorf("after the press: %q", got)
	}

	second := fail(gatedtest.Begun(t, s, storetest.Turn(t, s, turn.ID)))
	showAsk(t, s, second.MessageID, "78")
	if second.ID == first.ID || second.State != msg.AskOpen {
		t.Fatalf("the second failure has question %+v", second)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndRetryAsks(tx, turn.ID, 3000) })
	if got := edit(second); got != text+"\n\nRetried." {
		t.Errorf("after a retry elsewhere: %q", got)
	}
}

func TestAsk_TurnEnds_ExpiresItsQuestionsButTheBudget(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	sent := asked(t, s, turn, permission(), 1000)
	showAsk(t, s, sent.MessageID, "77")
	unsent := asked(t, s, turn, permission(func(q *rows.Question) { q.AskID = "second" }), 1000)
	budget := asked(t, s, turn, permission(func(q *rows.Question) { q.AskID = msg.AskBudget }), 1000)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 2000) })
	for id, want := range map[int64]msg.AskState{sent.ID: msg.AskExpired, unsent.ID: msg.AskExpired, budget.ID: msg.AskOpen} {
		if a := storetest.Must(s.Ask(t.Context(), id))(t); a.State != want {
			t.Errorf("question %s is %s, want %s", a.AskID, a.State, want)
		}
	}
	if edits := storetest.Must(s.DerivedFrom(t.Context(), sent.MessageID))(t); len(edits) != 1 || !strings.HasSuffix(edits[0].Content, "No answer is needed any more.") {
		t.Errorf("edits of the shown question: %+v", edits)
	}
	if edits := storetest.Must(s.DerivedFrom(t.Context(), unsent.MessageID))(t); len(edits) != 0 {
		t.Errorf("edits of the one that was not sent: %+v", edits)
	}
	if m := storetest.Must(s.Message(t.Context(), unsent.MessageID))(t); m.OutState != msg.OutCancelled {
		t.Errorf("the one that was not sent is %s", m.OutState)
	}
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		_, err := rows.PutAsk(tx, turn, permission(func(q *rows.Question) { q.AskID = "third" }), 3000)
		return err
	})
	if !errors.Is(err, store.ErrStale) {
		t.Errorf("a question of the ended turn: %v", err)
	}
}
