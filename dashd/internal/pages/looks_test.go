package pages_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/need"
)

var shots = flag.String("shots", "", "write screenshots into this folder")

// look is a page to look at, and what to wait for.
type look struct{ name, path, ready string }

func sampleLooks() (all []look) {
	for _, s := range samples() {
		all = append(all, look{s.name, "/sample/" + s.name, `document.querySelectorAll("details:not(.menu)").forEach((d) => d.open = true) || true`})
	}
	return all
}

// allLooks are the samples and the pages that have a frame of their own.
func allLooks() []look {
	return append(sampleLooks(), []look{
		{"chat", chat, countOf(".panel:not([hidden]) .message", 7) + ` && document.querySelector(".panel:not([hidden]) .typing").textContent && document.querySelector(".unread")`},
		{"chat-first", "/chat/acme/new", `document.querySelector(".welcome")?.checkVisibility()`},
		{"chat-files", chat, countOf(".panel:not([hidden]) .message", 7) + " && (" + countOf(".chosen li", 3) + " || !" +
			choice("quarterly report.pdf", strings.Repeat("x", 350_000), "notes.md", "# notes", strings.Repeat("a long name ", 8)+".csv", "1,2") + ")"},
		{"chats", "/chat/", "true"},
		{"no-chats", "/none", "true"},
		{"login", "/login", "true"},
		{"link", "/link", "true"},
		{"problem", "/problem", "true"},
	}...)
}

// looks opens every page in both sizes and schemes. The light phone of `make test` is in TestPages_KeyboardAndReader_CanUseEverything.
func looks(t *testing.T, b *browser.Browser) {
	need.Verify(t)
	site := newSite(t)
	p := b.Open(t)
	for _, size := range []struct {
		name  string
		width int64
	}{{"phone", 375}, {"desktop", 1280}} {
		p.Resize(size.width, 800)
		for _, scheme := range []string{"light", "dark"} {
			p.SetColorScheme(scheme)
			for _, page := range allLooks() {
				name := page.name + "-" + size.name + "-" + scheme
				t.Run(name, func(t *testing.T) {
					p := p.WithTest(t)
					visit(p, site, page)
					checkLooks(t, p)
					if *shots != "" {
						p.Screenshot(filepath.Join(*shots, name+".png"))
					}
				})
			}
		}
	}
}

// checkLooks: the open page fits, can be read, and has its parts.
func checkLooks(t *testing.T, p *browser.Tab) {
	t.Helper()
	p.CheckFits()
	p.CheckContrast()
	expect(t, "main landmarks", browser.Eval[int](p, `document.querySelectorAll("main").length`), 1)
	expect(t, "headings", browser.Eval[int](p, `document.querySelectorAll("h1").length`), 1)
	expect(t, "fields without a label", browser.Eval[int](p, `[...document.querySelectorAll("input:not([type=hidden]), textarea")].filter(e => !e.labels.length).length`), 0)
}

// liveOverview: the page shows what the server renders again, and the focus stays in place.
func liveOverview(t *testing.T, b *backend, p *browser.Tab) {
	now := time.Now().UnixMilli()
	facts := sampleFacts(now)
	fragment := func() string {
		html, err := b.pages.Fragment("overview.html", facts)
		if err != nil {
			t.Fatal(err)
		}
		return string(html)
	}
	b.facts = fragment()
	p.Visit(b.url + "/")
	// The first event replaces the fragment in the page.
	facts.Running[0].ChatJID = "web:first"
	b.set(func() { b.facts = fragment() })
	p.Wait(`document.querySelector("#facts").textContent.includes("web:first")`)
	p.Do(chromedp.Focus(chromedp.CSS(`#running ~ .scroll a`)))
	facts.Running[0].ChatJID, facts.Queued = "web:changed", nil
	b.set(func() { b.facts = fragment() })
	p.Wait(`document.querySelector("#facts").textContent.includes("web:changed")`)
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.getAttribute("href")`), "/turns/412")
	p.Wait(`!document.querySelector("#queued ~ .scroll")`)
}

// liveApprovals: what an operator types stays when a request comes.
func liveApprovals(t *testing.T, b *backend, p *browser.Tab) {
	shown := pages.Approvals{Pending: []*factrows.Request{{Code: "ABCD-1234", ChatJID: "telegram:5"}}, Groups: []pages.GroupChats{{Folder: "main"}}}
	set := func() {
		html, err := b.pages.Fragment("approvals.html", shown)
		if err != nil {
			t.Fatal(err)
		}
		b.set(func() { b.facts = string(html) })
	}
	set()
	p.Visit(b.url + "/")
	p.Wait(`document.querySelector("#folder-ABCD-1234")`)
	p.Do(chromedp.Focus(chromedp.CSS(`#folder-ABCD-1234`)))
	p.TypeKeys("eng")
	shown.Pending = append(shown.Pending, &factrows.Request{Code: "EFGH-5678", ChatJID: "telegram:6"})
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
	mux := http.NewServeMux()
	for path, write := range map[string]func(http.ResponseWriter){
		"/chat/": func(w http.ResponseWriter) {
			b.pages.Chats(w, pages.ChatsPage{Now: now, Groups: []pages.GroupLine{
				{WebChat: rows.WebChat{Folder: "main", Name: "Main"}, Last: &msg.Message{Content: "The release is out, all checks are green.", ReceivedAt: now - 120_000}},
				{WebChat: rows.WebChat{Folder: "acme/eng", Name: "Engineering"}, Last: &msg.Message{Content: "Can you look at the flaky test in pkg/store? It fails about once in fifty runs.", ReceivedAt: now - 7_500_000}},
				{WebChat: rows.WebChat{Folder: "acme/eng/oncall"}},
			}})
		},
		"/none": func(w http.ResponseWriter) { b.pages.Chats(w, pages.ChatsPage{}) },
		"/link": func(w http.ResponseWriter) { b.pages.Login(w, 403, login.Form{}) },
		"/problem": func(w http.ResponseWriter) {
			b.pages.Problem(w, httptest.NewRequest(http.MethodGet, "/", nil), 404, "No such chat", "There is no group acme/ops.")
		},
		"/login": func(w http.ResponseWriter) {
			b.pages.Login(w, 403, login.Form{Password: true, Problem: "That is not the password."})
		},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { write(w) })
	}
	for _, s := range samples() {
		mux.HandleFunc("/sample/"+s.name, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept") == "application/json" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			view(t, b.pages, w, s, s.data(now), pages.View{Tag: "sample", Login: operator, Requests: 3, Title: strings.ToUpper(s.name[:1]) + s.name[1:], Notice: "Saved. The change takes effect with the next message."})
		})
	}
	mux.Handle("/chat/acme/", b.handler)
	mux.HandleFunc("/chat/acme/new", func(w http.ResponseWriter, _ *http.Request) {
		b.pages.Chat(w, pages.ChatPage{Folder: "acme/new", Assistant: "Ada", Demo: true, MaxFile: 20 << 20, MaxFiles: 10, Login: operator})
	})
	mux.HandleFunc("/chat/acme/new/messages", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, map[string]any{"messages": []row{}, "more": false, "next": 0})
	})
	mux.HandleFunc("/chat/acme/new/topics", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"topics": []row{}})
	})
	mux.Handle("/assets/", b.handler)
	mux.Handle("/events", b.handler)
	server := httptest.NewServer(pages.Secure(mux))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
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
	b.work = []work{{
		TurnID: 9, State: "running", UpdatedAt: 1, HTML: "<p>The suite is <strong>half</strong> through; so far all is green.</p>",
		Plan:  []step{{"Run the suite", "in_progress"}, {"Open a pull request", "pending"}},
		Tools: []tool{{"1", "git push", "done"}, {"2", "make test", "running"}, {"3", "Fetch the flake report", "failed"}},
	}}
	say(1, "in", "#deploy", "Roll out v0.3.0 to staging")
	b.later = func() { say(0, "out", "#deploy", "<p>v0.3.0 is on staging.</p>") }
	say(500, "in", "#ideas", "A digest of the week, every Friday?")
}
