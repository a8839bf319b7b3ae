package upkeep

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const operator = "telegram:99"

// onboarders are the daemons that connect a chat.
var onboarders = []string{harness.Routd, harness.Gated, harness.Onbod}

func newOnboarding(t *testing.T) *drill {
	t.Helper()
	return &drill{Fixture: harness.NewFixture(t, programs, harness.Options{Env: []string{"OPERATORS=" + operator}, MaxWait: 2 * time.Minute})}
}

// startOnboarders starts the daemons of a migrated instance.
func (d *drill) startOnboarders() {
	d.T.Helper()
	for _, name := range onboarders {
		d.Restart(name)
	}
}

// code is that of a chat's pending request.
func (d *drill) code(chat string) string {
	d.T.Helper()
	return d.Value(`SELECT code FROM onboarding_requests WHERE state = 'pending' AND chat_jid = ?`, chat)
}

func (d *drill) approve(chat string) {
	d.T.Helper()
	body := map[string]string{"code": d.code(chat), "by": operator}
	d.OK(d.Client(harness.Onbod).Do(d.T.Context(), http.MethodPost, "/approve", body, nil))
}

// A backup holds a request that waits for an operator, one whose approval onbod has noted and not carried
// out, and the parked messages of both.
func TestBackup_OpenRequests_RestoredAndAnswered(t *testing.T) {
	t.Parallel()
	const waiting, noted = "telegram:7", "telegram:8"
	d := newOnboarding(t)
	d.Migrate()
	d.startOnboarders()
	for _, chat := range []string{waiting, noted} {
		d.Put(msg.Message{ChatJID: chat, Sender: chat, Content: "one"})
		d.Put(msg.Message{ChatJID: chat, Sender: chat, Content: "two"})
	}
	d.Until("all rows to be parked", func() bool {
		return d.Value(`SELECT count(*) FROM messages WHERE disposition = 'onboarding'`) == "4"
	})
	stopping, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d.OK(d.Instance.StopAll(stopping))
	// As a crash of onbod before its call of routd leaves it.
	d.OK(d.Store.Write(t.Context(), func(tx *store.Tx) error {
		return tx.Exec(`UPDATE onboarding_requests SET folder = 'eight', decided_by = ? WHERE code = ?`, operator, d.code(noted))
	}))
	file := filepath.Join(d.Instance.Dir, "b.tgz")
	d.command("backup", file)

	for _, cancelOpen := range []bool{false, true} {
		name, args := "continued", []string{"restore", file}
		if cancelOpen {
			name, args = "cancelled", []string{"restore", "--cancel-open", file}
		}
		t.Run(name, func(t *testing.T) {
			r := newOnboarding(t)
			r.command(args...)
			r.Migrate()
			if got := r.Value(`SELECT count(*) FROM onboarding_requests WHERE state = 'pending' AND folder IS NULL`); (got == "2") != cancelOpen {
				t.Errorf("%s requests without an approval", got)
			}
			r.startOnboarders()
			if cancelOpen {
				r.approve(noted)
			}
			r.Until("the noted approval to be carried out", func() bool { return r.code(noted) == "" })
			if got := r.Value(`SELECT count(*) FROM messages WHERE chat_jid = ? AND disposition = 'onboarding'`, waiting); got != "2" {
				t.Errorf("%s parked rows of the chat that waits, want two", got)
			}
			r.approve(waiting)
			r.Until("the parked rows to be decided", func() bool {
				return r.Value(`SELECT count(*) FROM messages WHERE direction = 'in' AND (disposition IS NULL OR disposition = 'onboarding')`) == "0"
			})
			for _, chat := range []string{waiting, noted} {
				r.WantEchoes(chat, "one", "two")
			}
		})
	}
}
