package push

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/webpush/webpushtest"
)

type fixture struct {
	*Push
	t       *testing.T
	service *webpushtest.Service
	now     time.Time
	sql     func(query string, args ...any)
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	st := storetest.Open(t)
	f := &fixture{t: t, service: webpushtest.New(t), now: time.Now()}
	f.sql = func(query string, args ...any) {
		t.Helper()
		if err := st.Write(context.Background(), func(tx *store.Tx) error { return tx.Exec(query, args...) }); err != nil {
			t.Fatal(err)
		}
	}
	f.restart(st)
	f.sql(`INSERT INTO registered_groups (folder, name, created_at) VALUES ('acme/eng', 'Engineering', 0)`)
	f.sql(`INSERT INTO messages (id, chat_jid, direction, timestamp, received_at) VALUES (1, 'web:acme/eng', 'in', ?1, ?1)`, f.ago(2*time.Minute))
	return f
}

// restart makes a Push as after a restart.
func (f *fixture) restart(st *store.Store) {
	f.t.Helper()
	p, err := New(st, "secret", "mailto:ops@example.org", func() time.Time { return f.now }, slog.New(slog.DiscardHandler))
	if err != nil {
		f.t.Fatal(err)
	}
	p.Client.HTTP.Transport = f.service.Client().Transport
	f.Push = p
}

func (f *fixture) ago(d time.Duration) int64 { return f.now.Add(-d).UnixMilli() }

func (f *fixture) device(name, kinds string) {
	f.t.Helper()
	s := f.service.Subscription(name)
	d := &rows.PushDevice{Subscription: s, Login: "web:operator", Name: name, CreatedAt: f.ago(time.Hour)}
	if err := f.Store.Write(context.Background(), func(tx *store.Tx) error { return rows.PutPushDevice(tx, d, 20) }); err != nil {
		f.t.Fatal(err)
	}
	if kinds != "" {
		f.sql(`UPDATE push_subscriptions SET kinds = ? WHERE device = ?`, kinds, name)
	}
}

// answered stores a turn that has ended with an answer some time ago.
func (f *fixture) answered(id int, ended time.Duration) {
	f.t.Helper()
	at := f.ago(ended)
	f.sql(`INSERT INTO turns (id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at)
		VALUES (?1, 'conversation', 'acme/eng', 'web:acme/eng', '', 1, 'x', 1, 'done', 1, 1, ?2)`, id, at)
	f.sql(`INSERT INTO messages (chat_jid, direction, timestamp, received_at, turn_id, out_state) VALUES ('web:acme/eng', 'out', ?1, ?1, ?2, 'sent')`, at, id)
}

// step looks once, and returns what was sent to which browser, sorted.
func (f *fixture) step() (sent []string) {
	f.t.Helper()
	if err := f.Push.step(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	for _, m := range f.service.Messages() {
		sent = append(sent, m.Browser+" "+strings.TrimRight(m.Payload, " "))
	}
	slices.Sort(sent)
	return sent
}

func (f *fixture) want(want ...string) {
	f.t.Helper()
	slices.Sort(want)
	if got := f.step(); !slices.Equal(got, want) {
		f.t.Errorf("sent %q, want %q", got, want)
	}
}

func notice(browser, title, body, url, tag string) string {
	return fmt.Sprintf(`%s {"body":%q,"tag":%q,"title":%q,"url":%q}`, browser, body, tag, title, url)
}

func answer(browser string, turn int) string {
	return notice(browser, "Your answer is ready", "Engineering", "/chat/acme/eng/", fmt.Sprint("turn", turn))
}

func TestStep_Events_AreSentOnceToDevicesThatWantThem(t *testing.T) {
	f := newFixture(t)
	f.device("all", "")
	f.device("questions", "question")
	f.answered(1, 5*time.Second)
	f.sql(`INSERT INTO asks (id, turn_id, ask_id, message_id, question, options, state, created_at, expires_at) VALUES (3, 1, 'a', 1, 'Secret?', '[]', 'open', ?, ?)`, f.ago(6*time.Second), f.now.Add(time.Hour).UnixMilli())
	f.sql(`INSERT INTO asks (id, turn_id, ask_id, message_id, question, options, state, created_at, expires_at) VALUES (4, 1, 'gated:retry1', 1, 'Try again?', '[]', 'open', ?, ?)`, f.ago(6*time.Second), f.now.Add(time.Hour).UnixMilli())
	f.alert(7, "teled is not connected", 2)
	f.alert(8, "seen once", 1)
	f.want(notice("all", "A question for you", "Engineering", "/chat/acme/eng/", "ask3"), notice("all", "Needs attention", "teled is not connected", "/", "alert7"), answer("all", 1),
		notice("questions", "A question for you", "Engineering", "/chat/acme/eng/", "ask3"))
	f.want()
	f.restart(f.Store)
	f.want()
}

// alert stores a problem that a number of looks have found, the first two minutes ago.
func (f *fixture) alert(id int, text string, looks int) {
	f.t.Helper()
	since := f.ago(2 * time.Minute)
	f.sql(`INSERT INTO alerts (id, key, text, fix, since, seen_at) VALUES (?1, ?1, ?2, '', ?3, ?3 + (?4 - 1) * 60000)`, id, text, since, looks)
}

func TestStep_Problems(t *testing.T) {
	f := newFixture(t)
	f.device("all", "problem")
	problem := func(id int) string {
		return notice("all", "Needs attention", fmt.Sprint("problem ", id), "/", fmt.Sprint("alert", id))
	}
	quiet := true
	f.Quiet = func() bool { return quiet }
	f.alert(1, "problem 1", 2)
	f.want()
	quiet = false
	f.want(problem(1))
	f.sql(`UPDATE alerts SET seen_at = ?`, f.ago(-2*time.Hour))
	for id := 2; id <= 5; id++ {
		f.alert(id, fmt.Sprint("problem ", id), 2)
	}
	f.want(problem(2), problem(3)) // three an hour
	f.want()
	f.now = f.now.Add(time.Hour + time.Second)
	f.want(problem(4), problem(5))
	f.sql(`UPDATE alerts SET ended_at = 1`)
	f.now = f.now.Add(time.Hour + time.Second)
	f.alert(6, "problem 6", 2)
	f.want(problem(6))
	f.sql(`UPDATE alerts SET ended_at = NULL WHERE id = 1`)
	f.want(problem(1)) // its notice went with its end
}

func TestStep_Events_ThatNeedNoNotice(t *testing.T) {
	for name, prepare := range map[string]func(*fixture){
		"old": func(f *fixture) {
			f.answered(1, 11*time.Minute)
			f.sql(`UPDATE messages SET received_at = 1 WHERE id = 1`)
		},
		"too new": func(f *fixture) { f.answered(1, time.Second) },
		"quick":   func(f *fixture) { f.answered(1, 61*time.Second) },
		"without answer": func(f *fixture) {
			f.answered(1, 5*time.Second)
			f.sql(`UPDATE messages SET out_state = 'cancelled' WHERE turn_id = 1`)
		},
		"failed":    func(f *fixture) { f.answered(1, 5*time.Second); f.sql(`UPDATE turns SET state = 'failed'`) },
		"elsewhere": func(f *fixture) { f.answered(1, 5*time.Second); f.sql(`UPDATE turns SET chat_jid = 'slack:C1'`) },
		"shown":     func(f *fixture) { f.answered(1, 5*time.Second); f.Shown("web:operator", "acme/eng") },
		"before it": func(f *fixture) {
			f.answered(1, 5*time.Second)
			f.sql(`UPDATE push_subscriptions SET created_at = ?`, f.ago(0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.device("phone", "")
			prepare(f)
			f.want()
		})
	}
	f := newFixture(t)
	f.device("phone", "")
	f.answered(1, 5*time.Second)
	f.Shown("web:other", "acme/eng")
	f.Shown("web:operator", "acme")
	f.want(answer("phone", 1))
}

func TestStep_AnswersOfTheService(t *testing.T) {
	status := func(code int, headers ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 1; i < len(headers); i += 2 {
				w.Header().Set(headers[i-1], headers[i])
			}
			w.WriteHeader(code)
		}
	}
	for name, tt := range map[string]struct {
		answer  func(http.ResponseWriter, *http.Request)
		retryIn time.Duration // 0: never
		left    int           // devices
		error   string
	}{
		"201":           {status(201), 0, 1, ""},
		"404":           {status(404), 0, 0, ""},
		"410":           {status(410), 0, 0, ""},
		"403":           {status(403), 0, 1, "the push service answered 403 Forbidden"},
		"400":           {status(400), 0, 1, "the push service answered 400 Bad Request"},
		"a redirect":    {status(307, "Location", "https://127.0.0.1:1/"), 0, 1, "the push service answered 307 Temporary Redirect"},
		"429":           {status(429, "Retry-After", "90"), 90 * time.Second, 1, ""},
		"429, at once":  {status(429, "Retry-After", "0"), retryDelay, 1, ""},
		"503":           {status(503), retryDelay, 1, ""},
		"no answer":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, retryDelay, 1, ""},
		"it never ends": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, retryDelay, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.service.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
			f.service.Answer = tt.answer
			f.Client.HTTP.Timeout = 300 * time.Millisecond
			f.device("phone", "")
			f.answered(1, 5*time.Second)
			f.want(answer("phone", 1))
			f.want()
			devices, err := rows.PushDevices(context.Background(), f.Store.Reader)
			if err != nil || len(devices) != tt.left || tt.left == 1 && devices[0].Error != tt.error {
				t.Errorf("devices: %+v, %v", devices, err)
			}
			if tt.retryIn > 0 {
				f.now = f.now.Add(tt.retryIn - time.Second)
				f.want()
				f.now = f.now.Add(time.Second)
				f.want(answer("phone", 1))
				f.now = f.now.Add(maxAge)
			} else {
				f.now = f.now.Add(time.Minute)
			}
			f.want()
		})
	}
}

func TestSend_NamesTheContactAndHowLongToKeepIt(t *testing.T) {
	f := newFixture(t)
	f.device("phone", "")
	f.answered(1, 5*time.Second)
	if err := f.Push.step(context.Background()); err != nil {
		t.Fatal(err)
	}
	all := f.service.Messages()
	if len(all) != 1 {
		t.Fatalf("%d messages", len(all))
	}
	m, h := all[0], all[0].Header
	if m.Subject != "mailto:ops@example.org" || m.Key != f.Client.PublicKey() || h.Get("Ttl") != "600" || h.Get("Urgency") != "high" || h.Get("Content-Encoding") != "aes128gcm" || len(h.Get("Topic")) != 32 || len(m.Payload) != 512 {
		t.Errorf("%+v, %d bytes", m, len(m.Payload))
	}
}
