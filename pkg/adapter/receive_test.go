package adapter

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"arizuko/pkg/msg"
)

// skipped is how many events a shell without a listener has counted as skipped.
func (r *fixture) skipped(s *Shell) (count float64) {
	r.t.Helper()
	r.metrics.MustRegister(s.counters.undecoded)
	families, err := r.metrics.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "arizuko_updates_undecoded_total" {
			count = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return count
}

func TestDecode_ErrorOrPanic_CostsOneEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var log strings.Builder
		shell := r.shell(logged(&log), redacting)
		for name, decode := range map[string]func() error{
			"invalid": func() error { return errors.New("no id, " + secret) },
			"panic":   func() error { var m *msg.Message; m.Content = ""; return nil },
		} {
			if shell.Decode(name, decode) {
				t.Errorf("%s is decoded", name)
			}
			if !strings.Contains(log.String(), `msg="undecodable event skipped" event=`+name) {
				t.Errorf("%s:\n%s", name, log.String())
			}
		}
		if !shell.Decode("good", func() error { return nil }) || r.skipped(shell) != 2 {
			t.Error("not 2 events were skipped")
		}
		if !strings.Contains(log.String(), "receive_test.go") || strings.Contains(log.String(), secret) {
			t.Errorf("log without stack, or with a secret:\n%s", log.String())
		}
	})
}

func TestReceiveAlways_RefusedEvent_StoresCursorAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var log strings.Builder
		shell := r.shell(logged(&log))
		bad := post("2", "of no chat")
		bad.ChatJID = "nowhere"
		begin := time.Now()
		if err := shell.ReceiveAlways(t.Context(), Inbound{Messages: []*msg.Message{bad}, Cursor: &Cursor{"offset", "3"}}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != (maxRefusals-1)*retryDelay {
			t.Errorf("took %v", took)
		}
		r.expectCursor("3")
		if last, err := r.store.LastMessageID(t.Context()); last != 0 || err != nil {
			t.Errorf("row %d is stored, %v", last, err)
		}
		if !strings.Contains(log.String(), `msg="event refused by the database skipped" event="nowhere 2"`) || r.skipped(shell) != 1 {
			t.Errorf("log:\n%s", log.String())
		}
	})
}

// The event is kept: it is not at fault.
func TestReceiveAlways_OtherFailures_AreRetried(t *testing.T) {
	for name, trigger := range map[string]string{
		"database fails": `BEFORE INSERT ON messages BEGIN SELECT * FROM no; END`,
		"cursor refused": `BEFORE INSERT ON cursors BEGIN SELECT raise(ABORT, 'refused'); END`,
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			shell, m, done := r.shell(), post("1", "hi"), make(chan error)
			r.exec(`CREATE TRIGGER no ` + trigger)
			go func() {
				done <- shell.ReceiveAlways(t.Context(), Inbound{Messages: []*msg.Message{m}, Cursor: &Cursor{"offset", "2"}})
			}()
			pass(time.Minute)
			r.exec(`DROP TRIGGER no`)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			r.expectCursor("2")
			if got := r.row(m.ID).Content; got != "hi" || r.skipped(shell) != 0 {
				t.Errorf("stored %q", got)
			}
		})
	}
}

func TestOutbox_DatabaseFails_IsTwoLines(t *testing.T) {
	for name, test := range map[string]struct{ fail, repair string }{
		"read":  {`ALTER TABLE deliveries RENAME TO away`, `ALTER TABLE away RENAME TO deliveries`},
		"write": {`CREATE TRIGGER no BEFORE INSERT ON deliveries BEGIN SELECT * FROM no; END`, `DROP TRIGGER no`},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			var log strings.Builder
			var rows []int64
			for i := range 50 {
				rows = append(rows, r.outIn(fmt.Sprintf("%s:%d", platform, i), "", "hi"))
			}
			r.exec(test.fail)
			stop := r.start(logged(&log))
			pass(time.Minute)
			r.exec(test.repair)
			pass(time.Minute)
			stop()
			for _, id := range rows {
				r.expect(id, "sent: sent")
			}
			if n := strings.Count(log.String(), "\n"); n != 2 || strings.Count(log.String(), "database access failed") != 1 {
				t.Errorf("%d lines:\n%.2000s", n, log.String())
			}
		})
	}
}

func TestReceive_QuotedPosts_AreStoredBeforeTheirAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		shell := r.shell() // BOTS=none
		old, answer := post("1", "/stop all of it"), post("2", "@bot what about this?")
		old.IsBot, old.Timestamp, answer.ReplyToID = true, 5, "1"
		in := Inbound{Messages: []*msg.Message{answer}, Quoted: []*msg.Message{old, post("", "of no id")}}
		for range 2 { // the second time it is a redelivery
			if err := shell.Receive(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		got := r.row(1)
		if got.PlatformID != "1" || got.Reason != msg.ReasonQuoted || got.Direction != msg.In || got.Source != shell.Daemon || got.Timestamp != 5 ||
			got.ReceivedAt != time.Now().UnixMilli() || !got.IsBot {
			t.Errorf("the quoted post is %+v", got)
		}
		if got := r.row(2); got.PlatformID != "2" || got.Disposition != "" {
			t.Errorf("the answer is %+v", got)
		}
		if last, err := r.store.LastMessageID(t.Context()); last != 2 || err != nil {
			t.Errorf("%d rows, %v", last, err)
		}
	})
}

// What a thread was made from comes without a message.
func TestReceive_QuotedPostAlone_IsStored(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		for range 2 {
			if err := r.shell().Receive(t.Context(), Inbound{Quoted: []*msg.Message{post("1", "hi"), post("", "of no id")}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.row(1); got.PlatformID != "1" || got.Reason != msg.ReasonQuoted {
			t.Errorf("the post is %+v", got)
		}
		if last, err := r.store.LastMessageID(t.Context()); last != 1 || err != nil {
			t.Errorf("%d rows, %v", last, err)
		}
	})
}

func TestReceive_ExcludedMessage_QuotesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		answer := post("2", "a bot's")
		answer.IsBot = true
		in := Inbound{Messages: []*msg.Message{answer}, Quoted: []*msg.Message{post("1", "hi")}, Cursor: &Cursor{"offset", "3"}}
		shell := r.shell()
		if err := shell.Receive(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if last, err := r.store.LastMessageID(t.Context()); last != 0 || err != nil {
			t.Errorf("%d rows, %v", last, err)
		}
		if n := testutil.ToFloat64(shell.counters.ofBots); n != 1 {
			t.Errorf("%v messages are counted as dropped", n)
		}
		r.expectCursor("3")
	})
}
