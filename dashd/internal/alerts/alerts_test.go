package alerts

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/facts"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const ada, bob = "telegram:1", "discord:2"

// fixture is an instance whose problems a test sets. Each look comes a minute after the one before.
type fixture struct {
	*Alerts
	t     *testing.T
	now   time.Time
	found []facts.Fact
	log   bytes.Buffer
	down  bool  // teled does not run
	read  int64 // messages up to this id have been returned by sent
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)}
	f.Alerts = &Alerts{
		Store: storetest.Open(t), Operators: []string{ada, bob, "slack:U3"}, Dashboard: "https://dash.example",
		Examine: func(context.Context) ([]facts.Fact, error) { return append([]facts.Fact(nil), f.found...), nil },
		Now:     func() time.Time { return f.now }, Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	}
	f.write(func(tx *store.Tx) error {
		if err := tx.PutChat("telegram:1", msg.ChatDM, "", 1); err != nil {
			return err
		}
		if err := tx.PutChat("discord:dm-9", msg.ChatDM, "", 1); err != nil {
			return err
		}
		_, _, err := tx.PutMessage(&msg.Message{ChatJID: "discord:dm-9", Sender: bob, Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 1})
		return err
	})
	return f
}

func (f *fixture) write(fn func(*store.Tx) error) {
	f.t.Helper()
	if err := f.Store.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// daemons stores that adapters are connected.
func (f *fixture) daemons(names ...string) {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		for _, name := range names {
			if err := daemonrows.Heartbeat(tx, daemonrows.Daemon{Name: name, HeartbeatAt: f.now.UnixMilli(), Connection: string(daemon.Connected)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func problem(kind, subject, text string) facts.Fact {
	return facts.Fact{Kind: kind, Level: facts.Problem, Subject: subject, Text: text, Fix: "repair " + kind}
}

// looks looks a number of times, and returns what was sent to whom.
func (f *fixture) looks(n int, found ...facts.Fact) (sent []string) {
	f.t.Helper()
	f.found = found
	for range n {
		f.now = f.now.Add(time.Minute)
		f.daemons("discd")
		if !f.down {
			f.daemons("teled")
		}
		if err := f.look(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
	return f.sent()
}

func (f *fixture) sent() (sent []string) {
	f.t.Helper()
	rows, err := store.All(f.t.Context(), f.Store.Reader, func(scan store.Scan) (m msg.Message, err error) {
		return m, scan(&m.ID, &m.ChatJID, &m.Content)
	}, `SELECT id, chat_jid, content FROM messages WHERE direction = 'out' AND out_state = 'queued' AND source = 'notice' AND id > ? ORDER BY id`, f.read)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range rows {
		sent = append(sent, m.ChatJID+" "+strings.ReplaceAll(m.Content, "\n", "|"))
		f.read = m.ID
	}
	return sent
}

func (f *fixture) want(got []string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func to(texts ...string) (both []string) {
	for _, text := range texts {
		both = append(both, "discord:dm-9 "+text, "telegram:1 "+text)
	}
	return both
}

func TestLook_Problem_SentOnceAndItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(f.looks(1, problem("unsent", "slack", "3 messages wait")))
	f.want(f.looks(1, problem("unsent", "slack", "4 messages wait")), to(`⚠️ 4 messages wait|To fix it: repair unsent`)...)
	f.want(f.looks(10, problem("unsent", "slack", "5 messages wait")))
	f.want(f.looks(2, problem("unsent", "slack", "5 messages wait")))
	f.want(f.looks(1)) // one look without it is not its end
	f.want(f.looks(1, problem("unsent", "slack", "6 messages wait")))
	f.want(f.looks(2), to("✅ ended: 6 messages wait, it took 16 min")...)
	f.want(f.looks(5))
	f.want(f.looks(2, problem("unsent", "slack", "1 message waits")), to("⚠️ 1 message waits|To fix it: repair unsent")...)
}

func TestLook_Flapping_NotSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 5 {
		f.want(f.looks(1, problem("agents", "", "no agent")))
		f.want(f.looks(1))
	}
}

func TestLook_Warnings_SentOnlyIfNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	warn := func(kind string) facts.Fact {
		return facts.Fact{Kind: kind, Level: facts.Warning, Text: kind, Fix: "look"}
	}
	f.want(f.looks(2, warn("turns-failed"), warn("backup-old"), warn("requests"), warn("refused")),
		to(`⚠️ backup-old|To fix it: look||⚠️ refused|To fix it: look`)...)
}

func TestLook_TextOfStrangers_IsEscaped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(f.looks(2, problem("agents", "", "said [x](http://evil) **now**\n# Order")),
		to(`⚠️ said \[x\](http://evil) \*\*now\*\* \# Order|To fix it: repair agents`)...)
}

func TestLook_ManyProblems_ThreeMessagesAnHour(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var found []facts.Fact
	for i := range 3 {
		found = append(found, problem("k", fmt.Sprint(i), fmt.Sprint("p", i)))
		if sent := f.looks(2, found...); len(sent) != 2 {
			t.Fatalf("%d: %q", i, sent)
		}
	}
	for i := 3; i < 11; i++ {
		found = append(found, problem("k", fmt.Sprint(i), fmt.Sprint("p", i)))
	}
	f.want(f.looks(2, found...))
	f.want(f.looks(53, found[1:]...)) // the first has ended, too
	sent := f.looks(3, found[1:]...)
	if len(sent) != 2 || !strings.Contains(sent[0], "✅ ended: p0") || strings.Count(sent[0], "⚠️") != 4 ||
		!strings.HasSuffix(sent[0], "||and 4 more problems: https://dash.example/ or `dashd doctor`") {
		t.Errorf("%q", sent)
	}
	f.want(f.looks(30, found[1:]...))
}

func TestLook_QuietHours_OnlyWhatLastsIsSentAfterwards(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Quiet = "11:00-12:30"
	f.want(f.looks(5, problem("short", "", "short"), problem("long", "", "long")))
	f.want(f.looks(24, problem("long", "", "long")))
	f.want(f.looks(1, problem("long", "", "long")), to(`⚠️ long|To fix it: repair long`)...)
	f.Quiet = "12:30-12:40"
	f.want(f.looks(5)) // it ends, which is sent afterwards
	f.want(f.looks(6), to("✅ ended: long, it took 30 min")...)
}

func TestWithin_Hours(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hours string
		hour  int
		want  bool
	}{{"", 3, false}, {"22:00-07:00", 3, true}, {"22:00-07:00", 22, true}, {"22:00-07:00", 7, false}, {"22:00-07:00", 12, false}, {"09:00-10:00", 9, true},
		{"09:00-10:00", 10, false}, {"09:00-10:00", 8, false}, {"09:00-09:00", 9, false}} {
		if got := within(tt.hours, time.Date(2026, 1, 1, tt.hour, 0, 0, 0, time.Local)); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestLook_PlatformOutOfReach_SentThereWhatLastsLater(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.down = true
	gone := problem("daemon-gone", "teled", "teled does not run")
	f.want(f.looks(2, gone), "discord:dm-9 ⚠️ teled does not run|To fix it: repair daemon-gone")
	f.want(f.looks(3, gone, problem("disk-full", "", "full")), "discord:dm-9 ⚠️ full|To fix it: repair disk-full")
	f.down = false
	f.want(f.looks(2, problem("disk-full", "", "full")), "telegram:1 ⚠️ full|To fix it: repair disk-full",
		"discord:dm-9 ✅ ended: teled does not run, it took 5 min")
}

// A commit that fails as a whole, as by a kill, is made by the next look.
func TestLook_KilledBeforeItsCommit_TellsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.looks(1, problem("agents", "", "no agent"))
	if storetest.Server() == "" {
		f.write(func(tx *store.Tx) error {
			return tx.Exec(`CREATE TRIGGER stop BEFORE INSERT ON alert_notices BEGIN SELECT RAISE(ABORT, 'killed'); END`)
		})
		f.now = f.now.Add(time.Minute)
		f.daemons("teled", "discd")
		if err := f.look(t.Context()); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Error(err)
		}
		f.want(f.sent())
		f.write(func(tx *store.Tx) error { return tx.Exec(`DROP TRIGGER stop`) })
	}
	f.want(f.looks(1, f.found...), to(`⚠️ no agent|To fix it: repair agents`)...)
	f.want(f.looks(1, f.found...))
}

// ask writes the command as gated sends it.
func (f *fixture) ask(by, set string) string {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.Serve(w, httptest.NewRequestWithContext(f.t.Context(), http.MethodPost, "/v1/alerts?by="+by+"&set="+set, nil))
	return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
}

func TestServe_OnAndOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	contains := func(got string, want ...string) {
		t.Helper()
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%q lacks %q", got, text)
			}
		}
	}
	contains(f.ask(ada, ""), "200", `No problem is open.\n\nYou get a message about each new problem in your direct chat`)
	contains(f.ask("web:operator", ""), "200", "as you have no direct chat with a bot: put your account there in OPERATORS")
	contains(f.ask(ada, "maybe"), "400", "can follow the command")
	contains(f.ask(ada, "OFF"), "200", "You get no messages about new problems: /alerts on")
	f.want(f.looks(2, problem("agents", "", "no agent")), `discord:dm-9 ⚠️ no agent|To fix it: repair agents`)
	contains(f.ask(ada, ""), "no agent", "To fix it: repair agents", "You get no messages")
	contains(f.ask(ada, "on"), "You get a message about each new problem")
	f.want(f.looks(1, f.found...), `telegram:1 ⚠️ no agent|To fix it: repair agents`)
	f.Off = true
	contains(f.ask(ada, ""), "ALERTS is off")
	f.want(f.looks(3))
}

func TestHeartbeat_CalledWhileNothingIsOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	calls, status := 0, http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.String() != "/api/push/SECRET?status=up" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		calls++
		w.WriteHeader(status)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 2*maxAnswer))
	}))
	defer server.Close()
	f.Heartbeat = server.URL + "/api/push/SECRET?status=up"
	expect := func(want int) {
		t.Helper()
		if calls != want {
			t.Errorf("%d calls, want %d", calls, want)
		}
	}
	f.looks(2)
	expect(2)
	f.looks(4, problem("agents", "", "no agent"))
	expect(3) // two looks make a problem
	f.looks(2)
	expect(4)
	status = http.StatusNotFound
	f.looks(3)
	status = http.StatusOK
	f.looks(2)
	expect(9)
	server.Close()
	f.looks(2)
	log := f.log.String()
	if strings.Count(log, "cannot call") != 2 || strings.Count(log, "called again") != 1 || strings.Contains(log, "SECRET") || !strings.Contains(log, "404 Not Found") {
		t.Error(log)
	}
}

func TestHeartbeat_ExaminationFails_NotCalled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }))
	defer server.Close()
	f.Heartbeat = server.URL
	f.Examine = func(context.Context) ([]facts.Fact, error) { return nil, store.ErrLocked }
	if err := f.look(t.Context()); err == nil {
		t.Error("no error")
	}
}
