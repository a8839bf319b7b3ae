package api

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// question stores an open question of a running turn, for a user who is no operator.
func (r *fixture) question(set ...func(*rows.Question)) (a *msg.Ask) {
	r.t.Helper()
	turn := r.turn("telegram:1", msg.TurnRunning)
	q := &rows.Question{
		AskID: "color", Question: "Which color?", Options: []string{"red", "green"}, Who: msg.Who{Senders: []string{"telegram:7"}, Label: "Ann"},
		Name: "Eng", ExpiresAt: 9000,
	}
	for _, f := range set {
		f(q)
	}
	r.write(func(tx *store.Tx) (err error) {
		if a, err = rows.PutAsk(tx, turn, q, 4000); err != nil {
			return err
		}
		return tx.ClaimOutbound(a.MessageID, 1, 4500)
	})
	return a
}

func (r *fixture) ask(id int64) *msg.Ask {
	r.t.Helper()
	a := storetest.Must(r.st.Ask(r.t.Context(), id))(r.t)
	return a
}

// answerAsk checks the status of an answer, and its words.
func (r *fixture) answerAsk(path, body string, status int, words ...string) string {
	r.t.Helper()
	got, answer := r.post(path, body)
	if got != status {
		r.t.Fatalf("%s: %d %s, want %d", path, got, answer, status)
	}
	for _, w := range words {
		if !strings.Contains(answer, w) {
			r.t.Errorf("%s: %q does not say %q", path, answer, w)
		}
	}
	return answer
}

func answerPath(a *msg.Ask) string { return fmt.Sprintf("/v1/asks/%d/answer", a.ID) }

func TestAnswerAsk_OperatorAnswers_AgentGetsItAndChatAndAuditSayWho(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	a := r.question()
	r.answerAsk(answerPath(a), `{"option":2}`, 202, `"state":"answered"`, `"option":"green"`)
	now := r.ask(a.ID)
	if now.State != msg.AskAnswered || now.Option != "green" || now.AnsweredBy != "api" || now.EndedAt != 5000 {
		t.Errorf("question %+v", now)
	}
	if r.agents.asksEnded != 1 {
		t.Errorf("the agents looked %d times", r.agents.asksEnded)
	}
	want := []string{fmt.Sprintf("5000 api answer question %d of turn %d of main in telegram:1: green", a.ID, a.TurnID)}
	if diff := cmp.Diff(want, r.audit()); diff != "" {
		t.Error(diff)
	}
	edit := r.message(a.MessageID + 1)
	if edit.Kind != msg.KindEdit || edit.DerivedFrom != a.MessageID || !strings.Contains(edit.Content, "**green** — answered by an operator") {
		t.Errorf("the chat reads %+v", edit)
	}
}

func TestAnswerAsk_NotOpenOrUnknown_IsRefusedAndNotRecorded(t *testing.T) {
	t.Parallel()
	user := func(a *msg.Ask) func(*store.Tx) error {
		return func(tx *store.Tx) error { return rows.AnswerAsk(tx, a.ID, 1, "telegram:7", "Ann", 4600, 4600) }
	}
	for _, tt := range []struct {
		name   string
		set    func(*rows.Question)
		before func(*msg.Ask) func(*store.Tx) error
		body   string
		status int
		words  []string
	}{
		{name: "answered by its user", before: user, body: `{"option":2}`, status: 409, words: []string{"not open any more", `telegram:7 answered \"red\"`}},
		{name: "its time is over", set: func(q *rows.Question) { q.ExpiresAt = 4900 }, body: `{"option":2}`, status: 409, words: []string{"it has expired"}},
		{name: "its turn has ended", before: func(a *msg.Ask) func(*store.Tx) error {
			return func(tx *store.Tx) error { return rows.CancelTurn(tx, a.TurnID, msg.ReasonCancelled, 4700) }
		}, body: `{"option":2}`, status: 409, words: []string{"its turn ended without an answer"}},
		{name: "no such option", body: `{"option":3}`, status: 400, words: []string{"from 1 to 2"}},
		{name: "no option", body: `{}`, status: 400, words: []string{"from 1 to 2"}},
		{name: "no body", body: ``, status: 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			var set []func(*rows.Question)
			if tt.set != nil {
				set = append(set, tt.set)
			}
			a := r.question(set...)
			if tt.before != nil {
				r.write(tt.before(a))
			}
			before := r.ask(a.ID)
			r.answerAsk(answerPath(a), tt.body, tt.status, tt.words...)
			if diff := cmp.Diff(before, r.ask(a.ID)); diff != "" || len(r.audit()) != 0 || r.agents.asksEnded != 0 {
				t.Errorf("it changed something: %s, audit %v", diff, r.audit())
			}
		})
	}
	r := newFixture(t)
	r.answerAsk("/v1/asks/7/answer", `{"option":1}`, 404, "no question 7")
	r.answerAsk("/v1/asks/x/answer", `{"option":1}`, 400, "not an id")
}

// A question whether a turn may spend more stays open when its turn has ended.
func TestAnswerAsk_BudgetOfAnEndedTurn_IsAnswered(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	a := r.question(func(q *rows.Question) { q.AskID = msg.AskBudget })
	r.write(func(tx *store.Tx) error { return rows.CancelTurn(tx, a.TurnID, msg.ReasonCancelled, 4700) })
	r.answerAsk(answerPath(a), `{"option":2}`, 202)
	if now := r.ask(a.ID); now.State != msg.AskAnswered {
		t.Errorf("question %+v", now)
	}
}

func TestAnswerAsk_BudgetIsRaised_TurnIsQueuedAgain(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	var scope rows.BudgetScope
	a := r.question(func(q *rows.Question) {
		q.AskID, q.Options = rows.BudgetScope{Turn: 1}.AskID(0.5), []string{"Raise it", "No"}
	})
	scope.Turn = a.TurnID
	r.write(func(tx *store.Tx) error {
		turn, err := tx.Turn(t.Context(), a.TurnID)
		if err != nil {
			return err
		}
		return rows.EndOverBudget(tx, turn, scope, 0.6, 0.5, 4600)
	})
	r.answerAsk(answerPath(a), `{"option":1}`, 202, `"option":"Raise it"`)
	turn, err := r.st.Turn(t.Context(), a.TurnID)
	if err != nil || turn.State != msg.TurnQueued || r.agents.revived != 1 {
		t.Errorf("turn %+v, %v, %d calls of Revived", turn, err, r.agents.revived)
	}
	if raised, err := rows.Raised(t.Context(), r.st.Reader, scope); raised != 0.5 || err != nil {
		t.Errorf("raised by %v, %v", raised, err)
	}
}

func TestOperators_CodeIsStoredAsAHash_AndWhatCameOfItRemoved(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	body := r.expect("POST", "/v1/operators/code", 201)
	code, _ := body["code"].(string)
	if body["expires_at"] != float64(5000+codes.Life.Milliseconds()) || !regexp.MustCompile(`^[A-Z2-9-]{14}$`).MatchString(code) {
		t.Fatalf("answer %v", body)
	}
	stored, err := rows.FindOperatorCode(t.Context(), r.st.Reader)
	if err != nil || stored.Hash != codes.Hash(code) || strings.Contains(stored.Hash, code) || stored.By != "api" {
		t.Errorf("stored %+v, %v", stored, err)
	}
	r.write(func(tx *store.Tx) error { return rows.AddOperator(tx, "telegram:7", codes.Hash(code), 6000) })
	for _, tt := range []struct {
		body   string
		status int
		words  string
	}{
		{`{"sender":"telegram:7"}`, 200, "telegram:7"},
		{`{"sender":"telegram:7"}`, 404, "did not become an operator by a code"},
		{`{"sender":"telegram:42"}`, 404, "did not become an operator by a code"},
		{`{}`, 404, "did not become"},
		{`{"sender":7}`, 400, "unexpected number"},
	} {
		if status, answer := r.post("/v1/operators/remove", tt.body); status != tt.status || !strings.Contains(answer, tt.words) {
			t.Errorf("%s: %d %s", tt.body, status, answer)
		}
	}
	want := []string{"5000 api new operator code ", "6000 telegram:7 add operator with the code of api", "5000 api remove operator telegram:7"}
	if diff := cmp.Diff(want, r.audit()); diff != "" {
		t.Error(diff)
	}
}
