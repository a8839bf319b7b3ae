package main

import (
	"context"
	"database/sql"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
)

// maxAnswerTime is how long a page may take on a bad day: five seconds, and what a busy machine adds.
const maxAnswerTime = 30 * time.Second

// hour is what the rows of a bad day are ahead of the clock, as if it had been set back.
const hour = int64(time.Hour / time.Millisecond)

// badDay is a data folder with a row of each kind, all from an hour ahead.
func badDay(t *testing.T) (data string) {
	t.Helper()
	data = dataFolder(t)
	lostRows(t, data)
	storeTurns(t, data, "queued", "failed")
	request(t, data, "ABCD-1234", "telegram:-5")
	storeHook(t, data, "")
	at := time.Now().UnixMilli() + hour
	shell(t, data, `INSERT INTO reminders (folder, chat_jid, kind, body, cron, state, next_slot, created_by, created_at, updated_at)
		VALUES ('main', 'telegram:-7', 'text', 'stand up', '0 9 * * *', 'active', ?, 'agent:main', ?, ?)`, at, at, at)
	shell(t, data, `INSERT INTO polls (message_id, folder, chat_jid, question, options, state, created_at) VALUES (1, 'main', 'telegram:-7', 'tea?', '["yes","no"]', 'open', ?)`, at)
	shell(t, data, `INSERT INTO asks (id, turn_id, ask_id, message_id, question, options, payload_hash, who, state, created_at, expires_at)
		VALUES (1, 2, 'budget', 1, 'More?', '["yes","no"]', '', '{}', 'open', ?, ?)`, at, at+hour)
	shell(t, data, `INSERT INTO routes (match, target) VALUES ('chat_jid=telegram:-7', 'main')`)
	shell(t, data, `INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, engaged_at) VALUES ('telegram:-7', '', ?, 'main', ?)`, at+hour, at)
	shell(t, data, `INSERT INTO sessions (group_folder, topic, session_id, updated_at) VALUES ('main', '', 'x', ?)`, at)
	shell(t, data, `INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, closed_at, ended_at) VALUES ('main', '', 'telegram:-7', 'process', ?, ?, ?)`, at, at, at)
	shell(t, data, `INSERT INTO push_subscriptions (login, endpoint, p256dh, auth, device, created_at) VALUES ('web:operator', 'https://push.example/x', 'BA', 'AA', 'Firefox', ?)`, at)
	shell(t, data, `INSERT INTO audit (at, who, what, detail) VALUES (?, 'cli', 'add route', '1')`, at)
	shell(t, data, `INSERT INTO daemons (name, started_at, heartbeat_at, connection) VALUES ('gated', ?, ?, 'connected'), ('teled', ?, ?, 'connected')`, at, at, at, at)
	storeDelivery(t, data, "push to main", "observed", "hook_filter", "")
	shell(t, data, `INSERT INTO hook_refusals (chat_jid, at, reason) VALUES (?, ?, 'wrong')`, hookJID, at)
	shell(t, data, `UPDATE messages SET received_at = ?, timestamp = ?`, at, at)
	shell(t, data, `UPDATE messages SET decided_at = ? WHERE decided_at IS NOT NULL`, at-5000)
	shell(t, data, `UPDATE turns SET created_at = ?, started_at = ?`, at, at)
	shell(t, data, `UPDATE turns SET run_id = 1, ended_at = ? WHERE ended_at IS NOT NULL`, at-5000)
	shell(t, data, `UPDATE chats SET last_seen_at = ?`, at)
	shell(t, data, `UPDATE onboarding_requests SET created_at = ?`, at)
	return data
}

// badDayPages has an address of each page, by its pattern. What is not for a browser to show is "".
func badDayPages() map[string]string {
	return map[string]string{
		"/": "/", "/messages": "/messages?text=hello", "/messages/{id}": "/messages/1", "/turns": "/turns", "/turns/retry": "/turns/retry", "/turns/{id}": "/turns/2", "/turns/{id}/context": "/turns/2/context",
		"/figures": "/figures", "/spend": "/spend", "/search": "/search?q=hello", "/reminders": "/reminders", "/polls": "/polls", "/lost": "/lost?reason=failed.permanent", "/lost/confirm": "/lost/confirm?reason=failed.permanent",
		"/chats": "/chats", "/chats/*": "/chats/telegram:-7", "/senders/*": "/senders/telegram:42", "/approvals": "/approvals", "/routes": "/routes", "/routes/edit": "/routes/edit", "/audit": "/audit", "/engagement": "/engagement", "/groups": "/groups",
		"/groups/*": "/groups/main", "/hooks/*": hookURL, "/settings": "/settings", "/egress": "/egress", "/access": "/access?chat=telegram:-7&sender=telegram:42", "/logs": "/logs?group=main&run=1", "/files": "/files?group=main&path=x",
		"/status": "/status?chat_jid=telegram:-7", "/connect/{daemon}": "/connect/teled", "/notifications": "/notifications", "/sw.js": "", "/offline": "", "/chat": "", "/chat/": "/chat/", "/chat/*": "/chat/main/", "/login": "", "/assets/*": "", "/healthz": "", "/readyz": "", "/metrics": "",
	}
}

// badDayActions has a form for each action that another daemon makes, by its pattern, with the name of the daemon before the address.
// What dashd does by itself is "".
func badDayActions() map[string]string {
	return map[string]string{
		"/turns/retry": "gated /turns/retry?ids=2", "/turns/{id}/retry": "gated /turns/2/retry", "/turns/{id}/cancel": "gated /turns/1/cancel", "/turns/{id}/undo": "gated /turns/2/undo", "/turns/{id}/redo": "gated /turns/2/redo?rest=true",
		"/turns/{id}/asks/{ask}/answer": "gated /turns/2/asks/1/answer?option=1",
		"/reminders/{id}/cancel":        "gated /reminders/1/cancel",
		"/polls/{id}/close":             "gated /polls/1/close", "/groups": "routd /groups?folder=new", "/groups/*": "routd /groups/main?do=delete",
		"/engagement/end": "routd /engagement/end?chat=telegram:-7", "/approvals/{code}/approve": "onbod /approvals/ABCD-1234/approve?folder=eng",
		"/approvals/{code}/reject": "onbod /approvals/ABCD-1234/reject", "/messages/{id}/replay": "gated /messages/2/replay?sure=yes",
		"/lost/replay": "gated /lost/replay?ids=2&reason=failed.permanent", "/routes/edit": "routd /routes/edit?do=save",
		"/hooks": "routd /hooks?folder=main&hook=x&kind=github", "/hooks/*": "routd " + hookURL + "?do=test", "/hook/*": "",
		"/daemons/{name}/restart": "", "/operators/code": "gated /operators/code", "/operators/remove": "gated /operators/remove?sender=telegram:42",
		"/egress/rules": "gated /egress/rules?host=x", "/egress/rules/{id}/remove": "gated /egress/rules/1/remove",
		"/notifications": "", "/notifications/{id}": "", "/login": "", "/logout": "", "/v1/login-link": "", "/v1/alerts": "", "/chat/*": "", "/assets/*": "", "/connect/{daemon}": "",
	}
}

// mounted are the patterns that a dashd has for a method, without streams of events.
func (p *process) mounted(method string) (patterns []string) {
	p.t.Helper()
	err := chi.Walk(p.Router, func(m, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if m == method && !strings.HasSuffix(pattern, "/events") {
			patterns = append(patterns, pattern)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return patterns
}

func TestBadDays_Tables_HaveEachPageAndAction(t *testing.T) {
	p := serve(t, dataFolder(t))
	for method, table := range map[string]map[string]string{"GET": badDayPages(), "POST": badDayActions()} {
		for _, pattern := range p.mounted(method) {
			if _, known := table[pattern]; !known {
				t.Errorf("%s %s has no entry: what does it say while other daemons are down?", method, pattern)
			}
		}
		for pattern := range table {
			if !slices.Contains(p.mounted(method), pattern) {
				t.Errorf("%s %s is not mounted", method, pattern)
			}
		}
	}
}

// badPeer is what answers in place of gated, routd and onbod, and what pages and actions say then.
type badPeer struct {
	answer        http.HandlerFunc // nil: nothing listens
	reads, writes string           // in pages and after actions; %s is the daemon
}

func badPeers() map[string]badPeer {
	wrong := "The program that answers is not %s, or it is broken"
	large := []byte(`{"text":"` + strings.Repeat("x", 10<<20) + `"}`) // made once: the calls run side by side
	return map[string]badPeer{
		"down": {nil, "%s does not answer: start it", "%s does not answer: start it"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the end of the request is not noticed
			<-r.Context().Done()
		}, "%s does not answer in time", "%s did not answer in time, and may still do what you asked for"},
		"500 without words": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, wrong, wrong},
		"HTML":              {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html><b>hello</b>")) }, wrong, wrong},
		"10 MB": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(large)
		}, wrong, wrong},
		"disk full": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":{"kind":"unavailable","message":"the disk is full"}}`))
		}, "%s cannot do that now: the disk is full", "%s cannot do that now: the disk is full"},
	}
}

func TestBadDays_OtherDaemons_PagesSayWhatIsMissing(t *testing.T) {
	for name, peer := range badPeers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var environ []string
			if peer.answer != nil {
				environ = peers(t, peer.answer)
			}
			p := serve(t, badDay(t), environ...)
			b := p.operator()
			for pattern, path := range badDayPages() {
				if path != "" {
					t.Run("GET "+pattern, func(t *testing.T) {
						t.Parallel()
						b.on(t).badDayPage(pattern, path, peer.reads)
					})
				}
			}
			form := editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
			form["match"] = []string{"chat_jid=telegram:-8"}
			for pattern, action := range badDayActions() {
				if daemon, target, ok := strings.Cut(action, " "); ok {
					t.Run("POST "+pattern, func(t *testing.T) {
						t.Parallel()
						b.on(t).badDayAction(target, form, strings.ReplaceAll(peer.writes, "%s", daemon))
					})
				}
			}
		})
	}
}

// on is the browser in another test.
func (b *browser) on(t *testing.T) *browser {
	return &browser{t: t, base: b.base, http: b.http}
}

// unlikely are numbers that a page never shows: times below zero.
var unlikely = regexp.MustCompile(`[> ]-[0-9.]+ ?(ms|s|min|h|d)\b`)

func (b *browser) badDayPage(pattern, path, want string) {
	b.t.Helper()
	began := time.Now()
	a := b.get(path)
	if took := time.Since(began); took > maxAnswerTime {
		b.t.Errorf("it took %s", took)
	}
	if status := map[bool]int{true: 404, false: 200}[strings.Contains(pattern, "log") || pattern == "/files"]; a.status != status {
		b.t.Errorf("%d, want %d: %.300s", a.status, status, a.body)
	}
	if pattern != "/status" && !strings.Contains(a.body, "<h1") {
		b.t.Errorf("no page: %.300s", a.body)
	}
	if found := unlikely.FindString(a.body); found != "" {
		b.t.Errorf("it says %q", found)
	}
	daemon := map[string]string{"/turns/{id}/context": "gated", "/access": "routd"}[pattern]
	if want := strings.ReplaceAll(want, "%s", daemon); daemon != "" && !strings.Contains(a.body, want) {
		b.t.Errorf("no word of %q", want)
	}
}

func (b *browser) badDayAction(target string, editor url.Values, want string) {
	b.t.Helper()
	path, query, _ := strings.Cut(target, "?")
	form, err := url.ParseQuery(query)
	if err != nil {
		b.t.Fatal(err)
	}
	if path == "/routes/edit" {
		editor = maps.Clone(editor)
		maps.Copy(editor, form)
		form = editor
	}
	began := time.Now()
	a := b.form(path, form)
	if a.status == http.StatusSeeOther {
		a = b.get(a.Get("Location"))
	}
	if took := time.Since(began); took > maxAnswerTime {
		b.t.Errorf("it took %s", took)
	}
	if !strings.Contains(a.body, want) || !strings.Contains(a.body, "<h1") {
		_, alert, _ := strings.Cut(a.body, `role="alert"`)
		b.t.Errorf("%d, no word of %q: %.300s", a.status, want, alert)
	}
}

// TestBadDays_DatabaseIsLocked_PagesAreShown holds the write lock while all pages are loaded. A logout waits, and says that it failed.
func TestBadDays_DatabaseIsLocked_PagesAreShown(t *testing.T) {
	data := badDay(t)
	p := serve(t, data)
	b := p.operator()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(data, "arizuko.db")+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.ExecContext(context.Background(), "ROLLBACK") }()
	for pattern, path := range badDayPages() {
		if path != "" {
			b.on(t).badDayPage(pattern, path, "")
		}
	}
}

// TestPages_DaemonDown_SayWhatCannotBeChanged: a page with forms says that the daemon that does what they ask is not running, and
// no longer once it runs, also one that is open.
func TestPages_DaemonDown_SayWhatCannotBeChanged(t *testing.T) {
	data := badDay(t)
	shell(t, data, `DELETE FROM daemons WHERE name = 'gated'`)
	b := serve(t, data).operator()
	pages := badDayPages()
	needs := map[string]string{
		"/messages/{id}": "gated", "/turns": "gated", "/turns/retry": "gated", "/chats/*": "gated", "/turns/{id}": "gated", "/reminders": "gated", "/polls": "gated", "/egress": "gated", "/lost": "gated", "/lost/confirm": "gated",
		"/approvals": "onbod", "/routes": "routd", "/engagement": "routd", "/groups": "routd", "/groups/*": "routd", "/hooks/*": "routd",
	}
	for pattern, daemon := range needs {
		for _, accept := range []string{"text/html", "application/json"} {
			if a := b.get(pages[pattern], "Accept: "+accept); a.status != 200 || !strings.Contains(a.body, daemon+" is not running") {
				t.Errorf("%s: %d, no word of %s", pattern, a.status, daemon)
			}
		}
	}
	now := time.Now().UnixMilli()
	for _, name := range []string{"gated", "onbod", "routd"} {
		shell(t, data, `INSERT INTO daemons (name, started_at, heartbeat_at, connection) VALUES (?, ?, ?, 'connected')`, name, now, now)
	}
	for pattern, daemon := range needs {
		if strings.Contains(b.get(pages[pattern]).body, "is not running") {
			t.Errorf("%s says that %s is not running", pattern, daemon)
		}
	}
}

// TestActions_EachOne_NamesTheOperator makes each action: the daemon that owns the rows writes into the audit who asked.
func TestActions_EachOne_NamesTheOperator(t *testing.T) {
	asked := make(chan string, 100)
	b := serve(t, badDay(t), peers(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			asked <- r.Header.Get("Arizuko-By")
		}
		_, _ = w.Write([]byte(`{}`))
	})...).operator()
	editor := editorForm(t, b.must(200, "GET", "/routes/edit", "").body)
	for pattern, action := range badDayActions() {
		_, target, ok := strings.Cut(action, " ")
		if !ok {
			continue
		}
		path, query, _ := strings.Cut(target, "?")
		form, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(form, editor)
		form.Set("do", map[bool]string{true: "save", false: "delete"}[path == "/routes/edit"])
		b.form(path, form)
		select {
		case by := <-asked:
			if by != "web:operator" {
				t.Errorf("%s is made by %q", pattern, by)
			}
		default:
			t.Errorf("%s asked no daemon", pattern)
		}
	}
}
