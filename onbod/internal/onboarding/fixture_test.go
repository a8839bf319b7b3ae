package onboarding

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/onbod/internal/rows"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ada      = "telegram:7"
	family   = "telegram:-100"
	operator = "telegram:42"
)

// fakeRoutd knows which chat has which group.
type fakeRoutd struct {
	groups map[string]string // by chat
	made   int               // connections
	shared []string

	refuse     error // Connect changes nothing
	lost       bool  // Connect does it, and its answer is lost
	unanswered bool  // neither does it
	answers    map[string]routeapi.Answer
}

func (f *fakeRoutd) Connect(_ context.Context, a routeapi.Approval) (done routeapi.Approved, err error) {
	done = routeapi.Approved{ChatJID: a.ChatJID, Folder: a.Folder, Shared: f.shared}
	folder, connected := f.groups[a.ChatJID]
	switch {
	case f.refuse != nil:
		return done, Refused(f.refuse)
	case f.unanswered:
		return done, apierr.New(apierr.Unavailable, "timeout")
	case connected && folder != a.Folder:
		return done, Refused(apierr.New(apierr.Conflict, "chat %s is connected to the group %s already", a.ChatJID, folder))
	case !connected:
		f.groups[a.ChatJID] = a.Folder
		f.made++
		done.Created = len(f.shared) == 0
	}
	if f.lost {
		return done, apierr.New(apierr.Unavailable, "connection lost")
	}
	return done, nil
}

func (f *fakeRoutd) Resolve(_ context.Context, items []routeapi.Item) (answers []routeapi.Answer, err error) {
	if f.unanswered {
		return nil, errors.New("timeout")
	}
	for _, i := range items {
		a := f.answers[i.ChatJID]
		if folder := f.groups[i.ChatJID]; folder != "" {
			a = routeapi.Answer{Action: routeapi.Trigger, Folder: folder}
		}
		a.ID = i.ID
		answers = append(answers, a)
	}
	return answers, nil
}

// fixture is onboarding on its own database.
type fixture struct {
	*Onboarding
	t     testing.TB
	routd *fakeRoutd
	clock time.Time
	noted []string
	path  string // of the database
	reg   *prometheus.Registry
	log   strings.Builder
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: time.UnixMilli(1_800_000_000_000), routd: &fakeRoutd{groups: map[string]string{}, answers: map[string]routeapi.Answer{}}}
	f.path = storetest.Path(t)
	f.restart(storetest.OpenAt(t, f.path, nil), t.TempDir())
	f.chat(operator, msg.ChatDM, "Olga")
	return f
}

// restart replaces the process.
func (f *fixture) restart(st *store.Store, groups string) {
	f.reg = prometheus.NewRegistry()
	f.Onboarding = New(Config{
		Operators: map[string]bool{operator: true, "slack:U1": true, msg.WebOperator: true}, TTL: 168 * time.Hour,
		MaxPerSender: 5, MaxPerHour: 20, MaxPending: 50, Groups: groups, Now: func() time.Time { return f.clock },
	}, st, f.routd, slog.New(slog.NewTextHandler(&f.log, nil)), f.reg, func(notes ...string) { f.noted = notes })
}

// byCode makes a sender an operator as gated does.
func (f *fixture) byCode(sender string) {
	f.t.Helper()
	f.ok(f.st.Write(f.t.Context(), func(tx *store.Tx) error {
		if err := gatedtest.PutOperatorCode(tx, &gatedtest.OperatorCode{Hash: "h", By: "web:ada", ExpiresAt: 2}, 1); err != nil {
			return err
		}
		return gatedtest.AddOperator(tx, sender, "h", 1)
	}))
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// sql changes the database behind the store.
func (f *fixture) sql(statement string) {
	f.t.Helper()
	db, err := sql.Open("sqlite3", f.path)
	f.ok(err)
	_, err = db.ExecContext(f.t.Context(), statement)
	f.ok(err)
	f.ok(db.Close())
}

// metrics are the values of a metric of one value or of one label, by label.
func (f *fixture) metrics(name string) map[string]float64 {
	f.t.Helper()
	families, err := f.reg.Gather()
	f.ok(err)
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label = l.GetValue()
			}
			values[label] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

func (f *fixture) chat(jid string, kind msg.ChatKind, title string) {
	f.t.Helper()
	f.ok(f.st.Write(f.t.Context(), func(tx *store.Tx) error { return tx.PutChat(jid, kind, title, 1) }))
}

func (f *fixture) ask(jid string) onboardapi.Asked {
	f.t.Helper()
	done, err := f.Ask(f.t.Context(), onboardapi.Ask{ChatJID: jid, Sender: ada, SenderName: "Ada", Title: "Family", Sample: "hello"})
	f.ok(err)
	return done
}

func (f *fixture) approve(code, folder string) Decided {
	f.t.Helper()
	d, err := f.Approve(f.t.Context(), Approval{Code: code, Folder: folder, By: operator})
	f.ok(err)
	return d
}

func (f *fixture) sweepOnce() (waiting bool) {
	f.t.Helper()
	waiting, err := f.sweep(f.t.Context())
	f.ok(err)
	return waiting
}

func (f *fixture) request(code string) *factrows.Request {
	f.t.Helper()
	r, err := rows.Request(f.t.Context(), f.st.Reader, code)
	f.ok(err)
	if r == nil {
		f.t.Fatalf("no request %s", code)
	}
	return r
}

// notices are the texts of the notices of a chat, oldest first.
func (f *fixture) notices(jid string) (texts []string) {
	f.t.Helper()
	last, err := f.st.LastMessageID(f.t.Context())
	f.ok(err)
	for id := int64(1); id <= last; id++ {
		m, err := f.st.Message(f.t.Context(), id)
		f.ok(err)
		if m.ChatJID != jid || m.Direction != msg.Out {
			continue
		}
		if m.Source != msg.SourceNotice || m.OutState != msg.OutQueued || !m.IsBot {
			f.t.Errorf("row %+v is not a queued notice", m)
		}
		texts = append(texts, m.Content)
	}
	return texts
}

// wantNotices compares the beginnings of a chat's notices.
func (f *fixture) wantNotices(jid string, want ...string) {
	f.t.Helper()
	got := f.notices(jid)
	same := slices.EqualFunc(got, want, func(text, begin string) bool { return strings.HasPrefix(text, begin) })
	if !same {
		f.t.Errorf("notices of %s: %q, want %q", jid, got, want)
	}
}
