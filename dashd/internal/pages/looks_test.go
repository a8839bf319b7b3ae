package pages_test

import (
	"flag"
	"html/template"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/testkit/browser"
)

var shots = flag.String("shots", "", "write screenshots into this folder")

// looks opens every page in both sizes and schemes.
func looks(t *testing.T, b *browser.Browser) {
	site := newSite(t)
	p := b.Open(t)
	for _, size := range []struct {
		name  string
		width int64
	}{{"phone", 375}, {"desktop", 1280}} {
		p.Resize(size.width, 800)
		for _, scheme := range []string{"light", "dark"} {
			p.SetColorScheme(scheme)
			for _, page := range []struct{ name, path, ready string }{
				{"chat", chat, countOf(".panel:not([hidden]) .message", 6) + ` && document.querySelector(".panel:not([hidden]) .typing").textContent && document.querySelector(".unread")`},
				{"chats", "/chat/", "true"},
				{"no-chats", "/none", "true"},
				{"overview", "/", "true"},
				{"fresh", "/fresh", "true"},
				{"steps", "/steps", "true"},
				{"connected", "/connected", "true"},
				{"approvals", "/approvals", `document.querySelector("details").open = true`},
				{"no-approvals", "/no-approvals", "true"},
				{"login", "/login", "true"},
				{"link", "/link", "true"},
				{"problem", "/problem", "true"},
			} {
				name := page.name + "-" + size.name + "-" + scheme
				t.Run(name, func(t *testing.T) {
					p := p.WithTest(t)
					p.Visit(site + page.path)
					p.Wait(page.ready)
					p.CheckFits()
					p.CheckContrast()
					if *shots != "" {
						p.Screenshot(filepath.Join(*shots, name+".png"))
					}
					expect(t, "main landmarks", browser.Eval[int](p, `document.querySelectorAll("main").length`), 1)
					expect(t, "headings", browser.Eval[int](p, `document.querySelectorAll("h1").length`), 1)
					expect(t, "fields without a label", browser.Eval[int](p, `[...document.querySelectorAll("input:not([type=hidden]), textarea")].filter(e => !e.labels.length).length`), 0)
				})
			}
		}
	}
}

// liveOverview: the page shows what the server renders again, and the focus stays in place.
func liveOverview(t *testing.T, b *backend, p *browser.Tab) {
	now := time.Now().UnixMilli()
	facts := sampleFacts(now)
	fragment := func() string {
		html, err := b.pages.OverviewFragment(facts)
		if err != nil {
			t.Fatal(err)
		}
		return html
	}
	b.facts = fragment()
	p.Visit(b.url + "/")
	// The first event replaces the fragment in the page.
	facts.Running.Lines[0].Chat = "web:first"
	b.set(func() { b.facts = fragment() })
	p.Wait(`document.querySelector("#facts").textContent.includes("web:first")`)
	p.Do(chromedp.Focus(chromedp.CSS(`#running ~ .scroll a`)))
	facts.Running.Lines[0].Chat, facts.Queued = "web:changed", pages.Turns{}
	b.set(func() { b.facts = fragment() })
	p.Wait(`document.querySelector("#facts").textContent.includes("web:changed")`)
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.getAttribute("href")`), "/chat/main/")
	p.Wait(`!document.querySelector("#queued ~ .scroll")`)
}

// liveApprovals: what an operator types stays when a request comes.
func liveApprovals(t *testing.T, b *backend, p *browser.Tab) {
	shown := pages.Approvals{Pending: []pages.RequestLine{{Code: "ABCD-1234", Chat: "telegram:5"}}, Groups: []pages.GroupChats{{Folder: "main"}}}
	set := func() {
		html, err := b.pages.ApprovalsFragment(shown)
		if err != nil {
			t.Fatal(err)
		}
		b.set(func() { b.facts = html })
	}
	set()
	p.Visit(b.url + "/approvals")
	p.Wait(`document.querySelector("#folder-ABCD-1234")`)
	p.Do(chromedp.Focus(chromedp.CSS(`#folder-ABCD-1234`)))
	p.TypeKeys("eng")
	shown.Pending = append(shown.Pending, pages.RequestLine{Code: "EFGH-5678", Chat: "telegram:6"})
	set()
	p.Wait(`document.querySelector("#folder-EFGH-5678")`)
	p.TypeKeys("-2")
	expect(t, "what was typed", browser.Eval[string](p, `document.querySelector("#folder-ABCD-1234").value`), "eng-2")
	shown.Pending = shown.Pending[1:]
	set()
	p.Wait(`!document.querySelector("#folder-ABCD-1234")`)
	expect(t, "the other field", browser.Eval[string](p, `document.querySelector("#folder-EFGH-5678").value`), "")
}

// newSite serves every page with content.
func newSite(t *testing.T) string {
	t.Helper()
	b := newBackend(t)
	now := time.Now().UnixMilli()
	fillChat(b, now)
	facts := sampleFacts(now)
	mux := http.NewServeMux()
	for path, write := range map[string]func(http.ResponseWriter){
		"/chat/": func(w http.ResponseWriter) {
			b.pages.Chats(w, pages.ChatsPage{Now: now, Groups: []pages.GroupLine{
				{Folder: "main", Name: "Main", Last: "The release is out, all checks are green.", LastAt: now - 120_000},
				{Folder: "acme/eng", Name: "Engineering", Last: "Can you look at the flaky test in pkg/store? It fails about once in fifty runs.", LastAt: now - 7_500_000},
				{Folder: "acme/eng/oncall"},
			}})
		},
		"/none":  func(w http.ResponseWriter) { b.pages.Chats(w, pages.ChatsPage{}) },
		"/{$}":   func(w http.ResponseWriter) { overview(t, b.pages, w, facts) },
		"/fresh": func(w http.ResponseWriter) { overview(t, b.pages, w, pages.Overview{Now: now}) },
		"/steps": func(w http.ResponseWriter) {
			overview(t, b.pages, w, pages.Overview{Now: now, Steps: sampleSteps(false)})
		},
		"/connected": func(w http.ResponseWriter) {
			overview(t, b.pages, w, pages.Overview{Now: now, Pending: 2, Steps: sampleSteps(true)})
		},
		"/approvals": func(w http.ResponseWriter) {
			approvals(t, b.pages, w, sampleApprovals(now), "Connected Engineering to the group eng. It shares files and sessions with Ops.")
		},
		"/no-approvals": func(w http.ResponseWriter) { approvals(t, b.pages, w, pages.Approvals{Now: now}, "") },
		"/link":         func(w http.ResponseWriter) { b.pages.Login(w, 403, pages.LoginPage{}) },
		"/problem":      func(w http.ResponseWriter) { b.pages.Problem(w, 404, "No such chat", "There is no group acme/ops.") },
		"/login": func(w http.ResponseWriter) {
			b.pages.Login(w, 403, pages.LoginPage{Password: true, Problem: "That is not the password."})
		},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { write(w) })
	}
	mux.Handle("/overview/events", b.handler)
	mux.Handle("/chat/acme/", b.handler)
	mux.Handle("/assets/", b.handler)
	server := httptest.NewServer(pages.Secure(mux))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func overview(t *testing.T, p *pages.Pages, w http.ResponseWriter, facts pages.Overview) {
	fragment, err := p.OverviewFragment(facts)
	if err != nil {
		t.Error(err)
	}
	p.Overview(w, pages.OverviewPage{Fragment: template.HTML(fragment)})
}

func sampleSteps(connected bool) *pages.Steps {
	s := &pages.Steps{Platforms: []pages.Platform{
		{Name: "Telegram", Daemon: "teled", Token: "TELEGRAM_BOT_TOKEN", Where: "from @BotFather, command /newbot", Connected: connected, OperatorID: "write /chatid to the bot in a direct chat: its answer is your entry"},
		{Name: "Discord", Daemon: "discd", Token: "DISCORD_BOT_TOKEN", Where: "from the developer portal, Bot, Reset Token", OperatorID: "discord: and your user id (Advanced, Developer Mode on; then Copy User ID in your profile)"},
		{Name: "Slack", Daemon: "slakd", Token: "SLACK_BOT_TOKEN", Where: "and SLACK_APP_TOKEN, from your app's page", OperatorID: "slack: and your member id (your profile, Copy member ID)"},
	}}
	if !connected {
		s.Daemons = []string{"onbod"}
		s.Platforms[2].Problem = "Slack does not accept SLACK_BOT_TOKEN: invalid_auth"
		return s
	}
	s.Requests = sampleApprovals(0).Pending
	return s
}

func sampleApprovals(now int64) pages.Approvals {
	return pages.Approvals{
		Now: now, Down: true, More: 3,
		Pending: []pages.RequestLine{
			{Code: "KQVD-4821", Chat: "telegram:-1001234567890", Kind: "group chat", Title: "Engineering: builds, releases and everything that breaks at night", Sender: "telegram:4211223344", SenderName: "Ada Lovelace",
				Sample: "@arizuko can you say why the nightly build is red? It has been since Tuesday, and TestWriteOrder looks like it waits for a lock that no process holds.", CreatedAt: now - 90_000, DefaultFolder: "telegram-engineering-builds-releases-and-ev"},
			{Code: "BMRT-0077", Chat: "discord:dm-99887766554433", Kind: "direct chat", CreatedAt: now - 7_200_000},
			{Code: "XPLS-5150", Chat: "slack:C0ABC", Kind: "group chat", Title: "ops", Sender: "slack:U0AB", SenderName: "Grace", Sample: "hello", CreatedAt: now - 90_000_000, Approving: "acme/ops"},
		},
		Decided: []pages.RequestLine{
			{Code: "QWRT-1234", Chat: "telegram:42", Title: "", State: "approved", Folder: "acme/eng", By: "telegram:42", DecidedAt: now - 3_600_000},
			{Code: "ZXCV-9876", Chat: "telegram:-100777", Title: "Free coins, click here", State: "rejected", Reason: "spam", By: "web:operator", DecidedAt: now - 86_400_000},
		},
		Groups: []pages.GroupChats{{Folder: "acme/eng", Chats: []string{"Dev (telegram:-100)", "slack:C0DEF"}, More: 2}, {Folder: "main"}},
	}
}

func sampleFacts(now int64) pages.Overview {
	return pages.Overview{
		Daemons: []pages.DaemonLine{
			{Name: "dashd", Connection: "connected", Version: "v0.3.0", OK: true, HeartbeatAt: now - 2_000},
			{Name: "gated", Connection: "connected", Version: "v0.3.0", OK: true, HeartbeatAt: now - 3_000},
			{Name: "routd", Connection: "connected", Version: "v0.3.0", OK: true, HeartbeatAt: now - 1_000},
			{Name: "teled", Connection: "bad credentials", Detail: "getMe: 401 Unauthorized: the token is not known", Version: "v0.3.0", HeartbeatAt: now - 180_000},
		},
		Routes: []string{
			`route 3 matches nothing: match: sender: "Ann" is not an id, which has a platform as in telegram:42: use sender_name for a display name`,
			"route 7 (platform=telegram) lets any user reach group main; direct messages of all of them share its sessions: " +
				"match a sender or a room, or set access in the group's config",
		},
		Running: pages.Turns{Count: 1, Lines: []pages.TurnLine{
			{ID: 412, Folder: "main", Chat: "web:main", Topic: "#deploy", State: "running", Since: now - 95_000, Attempts: 1},
		}},
		Queued: pages.Turns{Count: 2, Lines: []pages.TurnLine{
			{ID: 413, Folder: "acme/eng", Chat: "telegram:-1001234567", State: "queued", Since: now - 30_000, Attempts: 2, Error: "exit status 1: the agent ended without an answer"},
			{ID: 414, Folder: "acme/eng", Chat: "slack:C0ABC", Topic: "#fix", State: "queued", Since: now - 12_000},
		}},
		Waiting: pages.WaitingLine{Rows: 3, Chat: "telegram:-1001234567", Since: now - 240_000},
		Now:     now,
	}
}

// fillChat stores a conversation that shows what messages may hold.
func fillChat(b *backend, now int64) {
	say := func(minutesAgo int64, direction, topic, text string) {
		r := row{Direction: direction, Topic: topic, Timestamp: now - minutesAgo*60_000, Sender: "web:operator", SenderName: "Operator", Content: text}
		if direction == "out" {
			r.Sender, r.SenderName, r.HTML = "agent:acme/eng", "Ada", text
		}
		b.add(r)
	}
	say(42, "in", "", "Is the nightly build green?")
	say(41, "out", "", "<p>Not quite. Two of 318 tests failed, both in <code>pkg/store</code>:</p><ul><li><code>TestWriteOrder</code>: timed out after 10 s</li><li><code>TestReopen</code>: a file was still locked</li></ul><p>I think one causes the other. Shall I look into it?</p>")
	say(40, "in", "", "Yes please. And tell me what you would change.")
	say(36, "out", "", "<p>The writer keeps its lock while it waits for the reader:</p><pre><code class=\"language-go\">tx, err := db.Begin(ctx)\nif err != nil {\n\treturn err\n}\ndefer lock.Release() // too late: Wait below needs it</code></pre><p>Releasing it before the wait fixes both. Timings of 50 runs:</p><table><thead><tr><th>test</th><th>before</th><th>after</th></tr></thead><tbody><tr><td>TestWriteOrder</td><td>9.8 s</td><td>0.2 s</td></tr><tr><td>TestReopen</td><td>1.1 s</td><td>0.1 s</td></tr></tbody></table>")
	say(3, "in", "", "Great, open a pull request.")
	say(2, "out", "", "<p>On it. I will run the whole suite first.</p>")
	b.typing = []string{""}
	say(1, "in", "#deploy", "Roll out v0.3.0 to staging")
	b.later = func() { say(0, "out", "#deploy", "<p>v0.3.0 is on staging.</p>") }
	say(500, "in", "#ideas", "A digest of the week, every Friday?")
}
