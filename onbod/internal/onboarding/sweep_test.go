package onboarding

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	factrows "arizuko/pkg/facts/rows"
)

// TestSweep_OneRequestRefused_OthersGoOn: the database refuses the rows of one chat.
func TestSweep_OneRequestRefused_OthersGoOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	noted, old := f.ask("telegram:8").Code, f.ask("telegram:9").Code
	f.routd.unanswered = true
	f.approve(noted, "fam")
	f.routd.unanswered = false
	f.sql(`CREATE TRIGGER refuse BEFORE INSERT ON messages WHEN NEW.chat_jid = 'telegram:8' BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	f.clock = f.clock.Add(f.cfg.TTL)
	if _, err := f.sweep(t.Context()); err == nil {
		t.Error("no error")
	}
	if r := f.request(noted); !r.Noted() {
		t.Errorf("%+v", r)
	}
	if r := f.request(old); r.State != factrows.RequestExpired {
		t.Errorf("%+v", r)
	}
}

// TestExpire_DecidedMeanwhile_IsNotCounted: an operator decided between the read and the write.
func TestExpire_DecidedMeanwhile_IsNotCounted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.request(f.ask(family).Code)
	f.approve(r.Code, "fam")
	f.clock = f.clock.Add(f.cfg.TTL)
	left, err := f.expire(t.Context(), []*factrows.Request{r}, new([]error))
	f.ok(err)
	if len(left) != 0 || strings.Contains(f.log.String(), "request expired") || f.metrics("arizuko_onboarding_requests_total")["expired"] != 0 {
		t.Errorf("%d left, log %s", len(left), f.log.String())
	}
}

// TestGauges_NoRequest_AreZero: a millisecond passes between two looks at the clock.
func TestGauges_NoRequest_AreZero(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Now = func() time.Time { f.clock = f.clock.Add(time.Millisecond); return f.clock }
	f.reg = prometheus.NewRegistry()
	f.gauges(f.reg)
	for _, name := range []string{"arizuko_onboarding_pending", "arizuko_onboarding_oldest_seconds"} {
		if got := f.metrics(name)[""]; got != 0 {
			t.Errorf("%s is %v without a request", name, got)
		}
	}
}

// TestApprove_AnswerUnreadable_IsApproved: the stored approval is no error to the operator.
func TestApprove_AnswerUnreadable_IsApproved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code := f.ask(family).Code
	f.routd.shared = []string{"chat_jid=telegram:42"}
	f.sql(`ALTER TABLE chats RENAME COLUMN sticky_at TO other`)
	if d := f.approve(code, "main"); d.State != factrows.RequestApproved || !strings.HasSuffix(d.Text, "to the group main.") {
		t.Errorf("%+v", d)
	}
}

// TestAsk_NoOperatorReachable_NoticeDoesNotNameThem: none has a direct chat with the bot.
func TestAsk_NoOperatorReachable_NoticeDoesNotNameThem(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Operators = map[string]bool{"slack:U1": true}
	code := f.ask(family).Code
	f.wantNotices(family, "This chat is not connected yet. Request "+code+" waits for an operator.")
	if !strings.Contains(f.log.String(), "no operator is notified") {
		t.Errorf("log %s", f.log.String())
	}
}
