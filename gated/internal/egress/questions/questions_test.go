package questions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// asker stores questions as agents.Asks does.
type asker struct{ st *store.Store }

func (a asker) Ask(t *msg.Turn, q *rows.Question, problem error, _ func(string) string) (asked *msg.Ask, err error) {
	q.Who = msg.Who{Everyone: true}
	if q.About.Host == "unanswerable.test" {
		q.Who = msg.Who{}
	}
	q.ExpiresAt = 1 << 50
	var refused error
	err = a.st.Write(context.Background(), func(tx *store.Tx) error {
		asked, refused = rows.PutAsk(tx, t, q, 1000)
		return problem
	})
	return asked, cmp.Or(err, refused)
}

func (a asker) AwaitAsk(ctx context.Context, id int64) (*msg.Ask, error) { return a.st.Ask(ctx, id) }

// fixture is a turn whose agent sends requests.
type fixture struct {
	t    *testing.T
	st   *store.Store
	q    *Questions
	turn *msg.Turn
}

func newFixture(t *testing.T) *fixture {
	st := storetest.Open(t)
	turn := gatedtest.Queued(t, st)
	gatedtest.Begun(t, st, turn)
	return &fixture{t, st, &Questions{Store: st, Asks: asker{st}, Redact: strings.Clone}, turn}
}

// request is one of the turn, with a receipt.
func (f *fixture) request(method, path string) *Request {
	f.t.Helper()
	r := &egress.Receipt{At: 1, TurnID: f.turn.ID, Folder: f.turn.Folder, Method: method, Host: "api.github.com", Port: 443,
		Path: path, State: egress.Asked}
	storetest.Write(f.t, f.st, func(tx *store.Tx) error { return egressrows.PutReceipt(tx, r) })
	return &Request{Receipt: r.ID, Turn: f.turn.ID, Request: *r.ForRules(), BodyBytes: 2, Excerpt: "{}", BodyHash: "abc"}
}

func (f *fixture) ask(in *Request) *Answer {
	f.t.Helper()
	answer, err := f.q.ask(f.t.Context(), in)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer
}

func (f *fixture) choose(ask int64, option int) {
	f.t.Helper()
	storetest.Write(f.t, f.st, func(tx *store.Tx) error { return rows.AnswerAsk(tx, ask, option+1, "telegram:7", "Ann", 1000, 1000) })
}

func TestAsk_Answer_HoldsForWhatItSays(t *testing.T) {
	t.Parallel()
	const issues = "/repos/acme/x/issues"
	for name, tt := range map[string]struct {
		option    int
		own, same bool // allowed: the request, and another one to the same folder
	}{
		"once":      {once, true, false},
		"this turn": {thisTurn, true, true},
		"always":    {always, true, true},
		"no":        {no, false, false},
	} {
		f := newFixture(t)
		in := f.request("POST", issues)
		asked := f.ask(in)
		if !asked.Pending || asked.Ask == 0 || !f.ask(in).Pending {
			t.Fatalf("%s: %+v", name, asked)
		}
		same := f.request("POST", issues)
		got := f.ask(same)
		if same.Waits = got.Ask; !got.Pending || got.Ask != asked.Ask {
			t.Errorf("%s: another one of the kind has not joined: %+v", name, got)
		}
		f.choose(asked.Ask, tt.option)
		again := f.ask(same)
		got = f.ask(in)
		if got.Allowed != tt.own || got.Pending || got.By != "telegram:7" || again.Allowed != tt.same {
			t.Errorf("%s: %+v, again %+v", name, got, again)
		}
		if (again.Reason != "") != (tt.option == no) || again.Pending != (tt.option == once) {
			t.Errorf("%s: another one of the kind: %+v", name, again)
		}
		// The rule that "Always" makes decides about later requests, until it is removed.
		if later := f.ask(f.request("POST", issues)); later.Allowed != (tt.option == thisTurn) {
			t.Errorf("%s: a later one of the kind: %+v", name, later)
		}
		for _, path := range []string{"/user", issues + "/1"} {
			if got := f.ask(f.request("POST", path)); got.Allowed || !got.Pending {
				t.Errorf("%s: %s: %+v", name, path, got)
			}
		}
		secret := f.request("POST", issues)
		secret.Secret = "github"
		if got := f.ask(secret); got.Allowed || !got.Pending {
			t.Errorf("%s: with a secret: %+v", name, got)
		}
	}
}

// A user in the chat does not overrule operators: their rules that come before the question still decide.
func TestAsk_Always_MakesARule(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		f := newFixture(t)
		storetest.Write(t, f.st, func(tx *store.Tx) error {
			if asks {
				if err := egressrows.PutRule(tx, &egress.Rule{Host: "api.github.com", Method: "POST", Path: "/repos/", Action: egress.Ask}); err != nil {
					return err
				}
			}
			return egressrows.PutRule(tx, &egress.Rule{Host: "api.github.com", Path: "/repos/acme/x/hooks", Action: egress.Deny})
		})
		in := f.request("POST", "/repos/%61cme/x/issues")
		f.choose(f.ask(in).Ask, always)
		all, err := egressrows.Rules(t.Context(), f.st.Reader)
		for path, want := range map[string]egress.Action{"pulls": egress.Pass, "hooks": egress.Deny} {
			rule := all.For(&egress.Request{Folder: f.turn.Folder, Host: "api.github.com", Port: 443, Method: "POST", Path: "/repos/acme/x/" + path})
			if err != nil || rule == nil || rule.Action != want || want == egress.Pass && (rule.Path != "/repos/acme/x/" || rule.Author != "telegram:7") {
				t.Errorf("%s: %v, %v", path, rule, err)
			}
		}
		if a, err := f.st.Ask(t.Context(), f.ask(f.request("POST", "/a%2fb/c")).Ask); err != nil || slices.Contains(a.Options, msg.EgressAlways) {
			t.Errorf("a path that no rule matches: %+v, %v", a, err)
		}
	}
}

func TestAsk_ManyAtOnce_JoinOrWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var all sync.WaitGroup
	for i := range 12 {
		in := f.request("POST", fmt.Sprintf("/%d/%d", i%6, i))
		all.Go(func() {
			if got, err := f.q.ask(t.Context(), in); err != nil || !got.Pending {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if asks, err := f.st.TurnAsks(t.Context(), f.turn.ID); err != nil || len(asks) != maxOpen {
		t.Errorf("%d questions, %v", len(asks), err)
	}
}

// A path that a server may read as another one has questions of its own.
func TestAsk_PathNotPlain_IsOfNoOtherKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.choose(f.ask(f.request("POST", "/repos/acme/x/issues")).Ask, thisTurn)
	for _, path := range []string{"/repos/acme/x/..", "/repos/acme/x/%2e%2e", "/repos/acme/x/..%2fy"} {
		if got := f.ask(f.request("POST", path)); !got.Pending {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := f.ask(f.request("POST", "/repos/acme/%78/pulls")); !got.Allowed {
		t.Errorf("an escaped letter: %+v", got)
	}
}

func TestAsk_CannotBeAsked_IsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.request("POST", "/")
	in.Host = "unanswerable.test"
	if got := f.ask(in); got.Pending || got.Allowed || !strings.Contains(got.Reason, "no user may answer") {
		t.Errorf("%+v", got)
	}
	in = f.request("POST", "/")
	in.Turn = 99
	if got := f.ask(in); got.Pending || got.Allowed || got.Reason == "" {
		t.Errorf("a turn that is not there: %+v", got)
	}
}

// The question of a request ends with its receipt, whichever process was killed.
func TestAsk_RequestHasEnded_QuestionIsDue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	asked, ended := f.request("POST", "/a/"), f.request("POST", "/b/")
	f.ask(asked)
	want := f.ask(ended).Ask
	storetest.Write(t, f.st, func(tx *store.Tx) error {
		return egressrows.EndReceipt(tx, &egress.Receipt{ID: ended.Receipt, State: egress.Refused, EndedAt: 5})
	})
	due, err := rows.AsksDue(t.Context(), f.st.Reader, 1000)
	if err != nil || len(due) != 1 || due[0].ID != want {
		t.Errorf("%+v, %v", due, err)
	}
}

// Those that wait for a question end with it if no user answers in time. If it ended otherwise, they are asked about.
func TestAsk_QuestionHasExpired_RefusesAllThatWaitForIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		at           int64
		own, another string // reasons
	}{
		"in time": {1 << 50, "no user answered in time", "no user answered in time"},
		"deleted": {1000, "the question could not be delivered, or was deleted", ""},
	} {
		f := newFixture(t)
		in, same := f.request("POST", "/"), f.request("POST", "/")
		same.Waits = f.ask(in).Ask
		storetest.Write(t, f.st, func(tx *store.Tx) error { return rows.ExpireAsk(tx, same.Waits, tt.at) })
		if own, another := f.ask(in), f.ask(same); own.Reason != tt.own || another.Reason != tt.another || another.Allowed {
			t.Errorf("%s: %+v, %+v", name, own, another)
		}
	}
}

// What a request says about itself comes after what gated says about it.
func TestDetail(t *testing.T) {
	t.Parallel()
	in := newFixture(t).request("POST", "/a/b")
	in.Query, in.Secret, in.Excerpt, in.BodyBytes = "x=1", "key", "{}\nAlways allows nothing", 99
	want := "Always allows acme: POST api.github.com/a/ → pass\nsecret: key\nquery: x=1\nbody (SHA-256 abc), the first 24 bytes: " + in.Excerpt
	if got := in.detail(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
