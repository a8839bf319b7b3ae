package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/apierr"
)

func newOnbod(t *testing.T) *fake {
	o := newFake(t, "onbod")
	o.answer = map[string]string{"text": "Connected `Dev` to the group eng. It shares files and sessions with `Ops`."}
	o.answers = map[string]any{"/v1/requests?state=pending": map[string]any{"requests": []map[string]string{{"code": "ABCD-1234", "default_folder": "telegram-dev"}}}}
	return o
}

// request stores a pending request of a chat with a hostile title.
func request(t *testing.T, data, code, chat string) {
	t.Helper()
	shell(t, data, `INSERT INTO onboarding_requests (code, chat_jid, kind, sender, sender_name, title, sample, state, created_at)
		VALUES (?, ?, 'group', 'telegram:42', 'Ada', ?, ?, 'pending', ?)`, code, chat, "Dev\u202e<script>alert(1)</script>\n", strings.Repeat("<b>hi</b>\n", 100), 1_000)
}

func TestApprovals_Forms_AreDecidedByOnbod(t *testing.T) {
	data := dataFolder(t)
	request(t, data, "ABCD-1234", "telegram:-5")
	shell(t, data, `INSERT INTO routes (match, target) VALUES ('chat_jid=telegram:-7 verb=mention', 'main'), ('chat_jid=telegram:-7', 'main#observe'), ('', 'daemon:onbod')`)
	shell(t, data, `INSERT INTO chats (jid, platform, kind, title) VALUES ('telegram:-7', 'telegram', 'group', 'Ops')`)
	o := newOnbod(t)
	p := serve(t, data, "ONBOD_URL="+o.URL)
	b := p.operator()
	page := b.must(200, "GET", "/approvals", "").body
	contains(t, page, "ABCD-1234", "Dev&lt;script&gt;alert(1)&lt;/script&gt;", "group chat, <bdi>telegram:-5</bdi>", `<bdi>Ada</bdi> (<a href="/senders/telegram:42"><bdi>telegram:42</bdi></a>)`,
		`placeholder="telegram-dev"`, `>Approvals <span class="count">1<span`, `<option value="main">shared with mentions of the bot in “Ops” (telegram:-7), everything in “Ops” (telegram:-7)</option>`, "onbod is not running")
	if n := strings.Count(page, "&lt;b&gt;hi"); strings.ContainsAny(page, "\u202e") || n == 0 || n > 31 {
		t.Errorf("the sample is shown %d times", n)
	}
	a := b.submit("/approvals/ABCD-1234/approve", url.Values{"folder": {" eng "}})
	contains(t, a.body, "Connected Dev to the group eng. It shares files and sessions with Ops.")
	b.form("/approvals/ABCD-1234/reject", url.Values{"reason": {"no <b>"}})
	want := []string{`web:operator POST /approve {"by":"web:operator","code":"ABCD-1234","folder":"eng"}`, `web:operator POST /reject {"by":"web:operator","code":"ABCD-1234","reason":"no \u003cb\u003e"}`}
	if diff := cmp.Diff(want, o.asked("POST")); diff != "" {
		t.Error(diff)
	}
}

// TestApprovals_ManyPages_AskOnbodOnce: an open page is updated each second.
func TestApprovals_ManyPages_AskOnbodOnce(t *testing.T) {
	data := dataFolder(t)
	request(t, data, "ABCD-1234", "telegram:-5")
	o := newOnbod(t)
	b := serve(t, data, "ONBOD_URL="+o.URL).operator()
	began := time.Now()
	for range 5 {
		contains(t, b.must(200, "GET", "/approvals", "").body, `placeholder="telegram-dev"`)
	}
	if most := 1 + int(time.Since(began)/time.Second); len(o.asked("GET")) < 1 || len(o.asked("GET")) > most {
		t.Errorf("onbod was asked %d times, at most %d expected", len(o.asked("GET")), most)
	}
}

func TestApprovals_Refusals_AreShown(t *testing.T) {
	data := dataFolder(t)
	request(t, data, "ABCD-1234", "telegram:-5")
	o := newOnbod(t)
	p := serve(t, data, "ONBOD_URL="+o.URL)
	b := p.operator()
	for _, test := range []struct {
		err  error
		want string
	}{
		{apierr.New(apierr.BadRequest, "folder \"../x\" <b> is no folder"), "is no folder"},
		{apierr.New(apierr.Conflict, "request ABCD-1234 was approved by telegram:42"), "was approved by telegram:42"},
		{apierr.New(apierr.NotFound, "there is no request"), "there is no request"},
		{apierr.New(apierr.Unavailable, "starting"), "onbod cannot do that now: starting. Try again."},
	} {
		o.answer = test.err
		a := b.submit("/approvals/ABCD-1234/approve", url.Values{"folder": {"../x"}})
		if !strings.Contains(a.body, test.want) || !strings.Contains(a.body, "ABCD-1234") || strings.Contains(a.body, "<b>") {
			t.Errorf("%v: %d %s", test.err, a.status, a.body)
		}
	}
	o.Close()
	contains(t, b.submit("/approvals/ABCD-1234/approve", nil).body, "start it, then try again")
	calls := len(o.asked("POST"))
	for name, a := range map[string]answer{
		"a stranger":   p.browser().form("/approvals/ABCD-1234/approve", nil),
		"another site": b.do("POST", "/approvals/ABCD-1234/approve", "folder=eng", "Content-Type: application/x-www-form-urlencoded", "Origin: https://evil.example"),
		"too long":     b.form("/approvals/ABCD-1234/approve", url.Values{"folder": {strings.Repeat("x", 300_000)}}),
	} {
		if a.status != map[string]int{"a stranger": 401, "another site": 403, "too long": 400}[name] {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	if len(o.asked("POST")) != calls {
		t.Errorf("onbod was called: %q", o.asked("POST")[calls:])
	}
}

func TestApprovals_OpenPage_ShowsNewAndDecided(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data)
	b := p.operator()
	next := b.events("/events")
	next("hello")
	html, tag := b.fragment("/approvals", "")
	if !strings.Contains(html, "No request is waiting") {
		t.Errorf("at first: %s", html)
	}
	wait := func(want string) {
		t.Helper()
		for {
			if next("changed") == "" {
				t.Fatalf("the stream ended before %q", want)
			}
			if html, tag = b.fragment("/approvals", tag); strings.Contains(html, want) {
				return
			}
		}
	}
	request(t, data, "ABCD-1234", "telegram:-5")
	wait("/approvals/ABCD-1234/approve")
	shell(t, data, `UPDATE onboarding_requests SET state = 'rejected', decided_by = 'telegram:42', decided_at = 2000, reason = 'spam'`)
	wait("rejected")
	if html, again := b.fragment("/approvals", "W/"+tag); html != "" || again != tag {
		t.Errorf("a page that has not changed: %s %.200s", again, html)
	}
}

func TestOverview_FirstSteps_GoOnceAChatIsAnswered(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data, "OPERATORS=telegram:@ada")
	b := p.operator()
	has := func(page string, want bool, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if strings.Contains(page, text) != want {
				t.Errorf("%q: want %t in %s", text, want, page)
			}
		}
	}
	page := b.must(200, "GET", "/", "").body
	has(b.must(200, "GET", "/chat/", "").body, true, `<a href="/">Connect Telegram`)
	has(page, true, "First steps", "routd, gated, onbod", "TELEGRAM_BOT_TOKEN", "telegram:@ada is no id of telegram", "its request appears here")
	shell(t, data, `INSERT INTO daemons (name, started_at, heartbeat_at, connection, detail) VALUES ('slakd', 0, ?, 'bad_credentials', 'invalid_auth')`, p.Now().UnixMilli())
	request(t, data, "ABCD-1234", "telegram:-5")
	shell(t, data, `INSERT INTO routes (match, target) VALUES ('', 'daemon:onbod')`)
	page = b.must(200, "GET", "/", "").body
	has(page, true, "First steps", "slakd: invalid_auth", `action="/approvals/ABCD-1234/approve"`, `<a href="/approvals">1</a>`)
	shell(t, data, `INSERT INTO routes (match, target) VALUES ('chat_jid=telegram:-5', 'main')`)
	shell(t, data, `INSERT INTO chats (jid, platform, kind, title) VALUES ('telegram:-5', 'telegram', 'group', 'Dev')`)
	has(b.must(200, "GET", "/", "").body, true, "First steps", `<a href="/connect/teled">Connect Telegram</a>`)
	asked := shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, content, topic, timestamp, received_at, source)
		VALUES ('telegram:-5', 'in', 'telegram:42', 'hi', '', 1, 1, 'teled')`)
	turn := shell(t, data, `INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, ended_at)
		VALUES ('conversation', 'main', 'telegram:-5', '', ?, '', 0, 'done', 1, 2)`, asked)
	answer := shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, content, topic, timestamp, received_at, source, turn_id, out_state)
		VALUES ('telegram:-5', 'out', 'agent:main', 'hello', '', 3, 3, 'agent', ?, 'queued')`, turn)
	has(b.must(200, "GET", "/", "").body, true, "First steps")
	shell(t, data, `UPDATE messages SET out_state = 'sent' WHERE id = ?`, answer)
	has(b.must(200, "GET", "/", "").body, false, "First steps", "TELEGRAM_BOT_TOKEN")
	has(b.must(200, "GET", "/chat/", "").body, false, "Connect Telegram")
}
