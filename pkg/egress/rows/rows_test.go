package rows_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"arizuko/pkg/egress"
	"arizuko/pkg/egress/rows"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestQueryPlans(t *testing.T) {
	t.Parallel()
	storetest.CheckStatements(t)
}

func rulesOf(t *testing.T, s *store.Store) egress.Rules {
	t.Helper()
	return storetest.Must(rows.Rules(t.Context(), s.Reader))(t)
}

func TestMigration_Presets_AreRulesThatCanBe(t *testing.T) {
	t.Parallel()
	all := rulesOf(t, storetest.Open(t))
	for _, r := range all {
		if stored := r.String(); r.Check() != nil || r.String() != stored {
			t.Errorf("%s: %v", stored, r.Check())
		}
	}
	if len(all) == 0 {
		t.Error("there are none")
	}
}

// onlyRules replaces the presets by rules of these hosts.
func onlyRules(t *testing.T, s *store.Store, hosts ...string) (ids []int64) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		for _, r := range storetest.Must(rows.Rules(t.Context(), tx.Reader))(t) {
			if _, err := rows.RemoveRule(tx, r.ID); err != nil {
				return err
			}
		}
		for i, host := range hosts {
			r := &egress.Rule{Seq: int64(i + 1), Host: host, Action: egress.Deny, Author: "cli"}
			if err := rows.PutRule(tx, r); err != nil {
				return err
			}
			ids = append(ids, r.ID)
		}
		return nil
	})
	return ids
}

func TestRules_AddedAndRemoved_KeepTheirOrderAndCount(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ids := onlyRules(t, s, "a", "b", "c")
	first := &egress.Rule{Folder: "main", Host: "first", Method: "POST", Path: "/x", Action: egress.Inject, Secret: "gh", Author: "telegram:42", CreatedAt: 7}
	add := func(r *egress.Rule) func(*store.Tx) (*egress.Rule, error) {
		return func(tx *store.Tx) (*egress.Rule, error) { return r, rows.PutRule(tx, r) }
	}
	remove := func(tx *store.Tx) (*egress.Rule, error) { return rows.RemoveRule(tx, ids[1]) }
	for _, step := range []struct {
		name   string
		change func(*store.Tx) (*egress.Rule, error)
		host   string // of the rule that is returned
		want   string
	}{
		{"add", add(first), "first", "[first a b c]"},
		{"add another one there", add(&egress.Rule{Host: "x", Action: egress.Ask}), "x", "[x first a b c]"},
		{"add before one", add(&egress.Rule{Host: "y", Seq: 4, Action: egress.Ask}), "y", "[x first a y b c]"},
		{"add at the end", add(&egress.Rule{Host: "z", Seq: 99, Action: egress.Ask}), "z", "[x first a y b c z]"},
		{"add another one at the end", add(&egress.Rule{Host: "w", Seq: 100, Action: egress.Ask}), "w", "[x first a y b c z w]"},
		{"remove", remove, "b", "[x first a y c z w]"},
		{"remove again", remove, "", "[x first a y c z w]"},
	} {
		before := storetest.Must(rows.Version(t.Context(), s.Reader))(t)
		host := ""
		storetest.Write(t, s, func(tx *store.Tx) error {
			r, err := step.change(tx)
			if r != nil {
				host = r.Host
			}
			return err
		})
		var hosts []string
		for _, r := range rulesOf(t, s) {
			hosts = append(hosts, r.Host)
		}
		after := storetest.Must(rows.Version(t.Context(), s.Reader))(t)
		if fmt.Sprint(hosts) != step.want || host != step.host || (after > before) != (host != "") {
			t.Errorf("%s: %v, found %q, version %d after %d", step.name, hosts, host, after, before)
		}
	}
	if diff := cmp.Diff(first, rulesOf(t, s)[1], cmpopts.IgnoreFields(egress.Rule{}, "Seq")); diff != "" {
		t.Error(diff)
	}
}

// put stores a request, perhaps with changes.
func put(t *testing.T, s *store.Store, set ...func(*egress.Receipt)) *egress.Receipt {
	t.Helper()
	r := &egress.Receipt{At: 1, RunID: 2, TurnID: 3, Folder: "main", Method: "POST", Host: "example.com", Port: 443, Path: "/x?q", BytesOut: 5,
		State: egress.Sending, RuleID: 4, Rule: "a rule", AskID: 6, Secret: "gh", BodyHash: "00ff", By: "telegram:42"}
	for _, f := range set {
		f(r)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutReceipt(tx, r) })
	return r
}

func TestEndReceipt_EachStateAfterEach(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	end := func(r *egress.Receipt, state egress.State, at int64) error {
		next := *r
		next.State, next.Status, next.BytesIn, next.Reason, next.EndedAt = state, 201, 99, "why", at
		err := s.Write(t.Context(), func(tx *store.Tx) error { return rows.EndReceipt(tx, &next) })
		if err == nil {
			*r = next
		}
		return err
	}
	const open, over = 0, 50
	allowed := map[string]bool{
		"asked asked": true, "asked sending": true, "asked sending over": true, "asked refused over": true, "asked failed over": true,
		"sending sending": true, "sending sending over": true, "sending sent over": true, "sending refused over": true, "sending failed over": true,
	}
	for _, from := range egress.States() {
		for _, to := range egress.States() {
			for _, at := range []int64{open, over} {
				name := fmt.Sprintf("%s %s%s", from, to, map[int64]string{over: " over"}[at])
				if from != egress.Asked && from != egress.Sending && from != egress.Refused {
					continue // no request begins so
				}
				r := put(t, s, func(r *egress.Receipt) { r.State = from })
				err := end(r, to, at)
				if (err == nil) != allowed[name] {
					t.Errorf("%s: %v", name, err)
				}
				got := storetest.Must(rows.ListReceipts(t.Context(), s.Reader, rows.Filter{Limit: 1}))(t)
				if diff := cmp.Diff([]*egress.Receipt{r}, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
				if r.EndedAt != 0 {
					if err := end(r, egress.Failed, over); !errors.Is(err, store.ErrStale) {
						t.Errorf("%s, then failed: %v", name, err)
					}
				}
			}
		}
	}
}

func TestReceipts_AreListed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for i := range 6 {
		put(t, s, func(r *egress.Receipt) {
			r.At, r.TurnID = int64(i*10), int64(i%2)
			r.Folder, r.Host = []string{"main", "acme"}[i%2], []string{"a.test", "b.test"}[i/3]
			r.State = []egress.State{egress.Sending, egress.Asked, egress.Refused}[i%3]
		})
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.Exec(`INSERT INTO processes (daemon, place, addr, since, until) VALUES ('egress', 'a:/', '', 1, 2), ('gated', 'a:/', '', 1, 2), ('gated', 'b:/', '', 1, 2)`),
			tx.Exec(`INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, owner) VALUES ('a', '', '', 'process', 1, 2), ('b', '', '', 'process', 1, 3)`),
			tx.Exec(`UPDATE egress_receipts SET run_id = 1 WHERE id = 1`), tx.Exec(`UPDATE egress_receipts SET run_id = 9 WHERE id IN (2, 5)`))
	})
	list := func(f rows.Filter) []*egress.Receipt {
		if f.Limit == 0 {
			f.Limit = 10
		}
		return storetest.Must(rows.ListReceipts(t.Context(), s.Reader, f))(t)
	}
	for _, tt := range []struct {
		name string
		got  []*egress.Receipt
		want string
	}{
		{"all", list(rows.Filter{}), "[6 5 4 3 2 1]"},
		{"newest", list(rows.Filter{Limit: 2}), "[6 5]"},
		{"before", list(rows.Filter{Before: 3}), "[2 1]"},
		{"since", list(rows.Filter{Since: 31}), "[6 5]"},
		{"since the end of all", list(rows.Filter{Since: 99}), "[]"},
		{"folder", list(rows.Filter{Folder: "acme"}), "[6 4 2]"},
		{"folder, host, since", list(rows.Filter{Folder: "acme", Host: "b.test", Since: 40}), "[6]"},
		{"host", list(rows.Filter{Host: "a.test"}), "[3 2 1]"},
		{"state", list(rows.Filter{State: egress.Refused}), "[6 3]"},
		{"turn", storetest.Must(rows.ReceiptsOfTurn(t.Context(), s.Reader, 1, 2))(t), "[4 6]"},
	} {
		ids := []int64{}
		for _, r := range tt.got {
			ids = append(ids, r.ID)
		}
		if fmt.Sprint(ids) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, ids, tt.want)
		}
	}
	deleted := 0
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		deleted, err = rows.DeleteReceiptsBefore(tx, 50, 10)
		return err
	})
	if left := list(rows.Filter{}); deleted != 1 || len(left) != 5 {
		t.Errorf("%d deleted, %d left: the others are under way", deleted, len(left))
	}
}

func TestEndFormer_EndsAllButWhatOthersWorkOn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		const query = `INSERT INTO runs (id, folder, topic, chat_jid, thread_id, runtime, owner, started_at, closed_at, ended_at)
			VALUES (?,?,'','telegram:1','','process',?,1,?,?)`
		return errors.Join(tx.Exec(query, 1, "own", 0, nil, nil), tx.Exec(query, 2, "other", 8, nil, nil), tx.Exec(query, 3, "ended", 8, 5, 5))
	})
	var all []*egress.Receipt
	for _, state := range []egress.State{egress.Asked, egress.Sending} {
		for run := range int64(4) {
			all = append(all, put(t, s, func(r *egress.Receipt) { r.RunID, r.State = run, state }))
		}
	}
	for _, step := range []struct {
		run   int64
		ended string // runs
	}{{2, "2 2"}, {0, "0 1 2 3 0 1 2 3"}} {
		if step.run == 0 {
			put(t, s, func(r *egress.Receipt) { r.RunID = 2 })
		}
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndFormer(tx, step.run, 99) })
		var ended []string
		for _, r := range all {
			got := storetest.Must(rows.Receipt(t.Context(), s.Reader, r.ID))(t)
			if got.EndedAt != 0 {
				ended = append(ended, fmt.Sprint(r.RunID))
				want := map[egress.State]string{egress.Asked: "refused by", egress.Sending: "may have been sent"}[r.State]
				if !strings.Contains(got.String(), want) {
					t.Errorf("%s, was %s", got, r.State)
				}
			}
		}
		if strings.Join(ended, " ") != step.ended {
			t.Errorf("of run %d: ended are those of %v", step.run, ended)
		}
	}
	if got := storetest.Must(rows.ListReceipts(t.Context(), s.Reader, rows.Filter{Limit: 1}))(t)[0]; got.EndedAt != 0 {
		t.Errorf("a request of a run that another process works on has ended: %s", got)
	}
}
