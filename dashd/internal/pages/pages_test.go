package pages_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/dashd/internal/status"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

func newPages(t *testing.T) *pages.Pages {
	t.Helper()
	p, err := pages.New()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rendered returns all pages, with text in every field.
func rendered(t *testing.T, text string) map[string]*httptest.ResponseRecorder {
	t.Helper()
	p := newPages(t)
	write := func(page func(http.ResponseWriter)) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		page(w)
		return w
	}
	all := map[string]*httptest.ResponseRecorder{
		"login": write(func(w http.ResponseWriter) {
			p.Login(w, http.StatusForbidden, login.Form{Next: text, Problem: text, Password: true})
		}),
		"link": write(func(w http.ResponseWriter) {
			p.Login(w, http.StatusForbidden, login.Form{Next: text, Problem: text})
		}),
		"chats": write(func(w http.ResponseWriter) {
			p.Chats(w, pages.ChatsPage{Groups: []pages.GroupLine{{WebChat: rows.WebChat{Folder: text, Name: text}, Last: &msg.Message{Content: text, ReceivedAt: 1}}}})
		}),
		"chat": write(func(w http.ResponseWriter) {
			p.Chat(w, pages.ChatPage{Folder: text, Name: text, Assistant: text, LastID: 7, Login: text})
		}),
		"problem": write(func(w http.ResponseWriter) {
			p.Problem(w, httptest.NewRequest(http.MethodGet, "/", nil), http.StatusServiceUnavailable, text, text)
		}),
	}
	for _, s := range samples() {
		all[s.name] = write(func(w http.ResponseWriter) {
			view(t, p, w, s, s.hostile(text), pages.View{Title: text, Notice: text, Problem: text, Up: []pages.Link{{Path: text, Text: text}}, Tag: text, Login: text})
		})
	}
	return all
}

func TestPages_HostileText_Escaped(t *testing.T) {
	const hostile = `x"'><script>alert(1)</script></title></textarea><b onclick=x>&lt;` + "\x00`{{.}}"
	allowed := regexp.MustCompile(`^<script type="module" src="/assets/[0-9a-f]{16}/[a-z]+\.js"></script>`)
	for name, w := range rendered(t, hostile) {
		body := w.Body.String()
		if !strings.Contains(body, "alert(1)") {
			t.Errorf("%s: does not show the text", name)
		}
		for at := range strings.SplitSeq(body, "<script") {
			if at != body && !strings.HasPrefix(at, "<!doctype") && !allowed.MatchString("<script"+at) {
				t.Errorf("%s: a script got in: <script%.80s", name, at)
			}
		}
		if strings.Contains(body, "<b onclick") {
			t.Errorf("%s: an element got in", name)
		}
	}
}

// The content policy forbids inline scripts and styles, so no page may have any.
func TestPages_NoInlineScript(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|="?javascript:|(src|href)="?(https?:)?//`)
	for name, w := range rendered(t, "plain") {
		if found := inline.FindString(w.Body.String()); found != "" {
			t.Errorf("%s: holds %q", name, found)
		}
	}
}

func TestPages_StatusAndHeaders(t *testing.T) {
	for name, w := range rendered(t, "plain") {
		want := map[string]int{"login": 403, "link": 403, "problem": 503}[name]
		if want == 0 {
			want = 200
		}
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", name, w.Code, want)
		}
		if got := w.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
			t.Errorf("%s: type %q", name, got)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: may be cached: %q", name, got)
		}
		body := w.Body.String()
		if hasNav, wantNav := strings.Contains(body, "<nav"), want != 403; hasNav != wantNav {
			t.Errorf("%s: navigation: %t, want %t", name, hasNav, wantNav)
		}
	}
}

func TestPages_Words(t *testing.T) {
	p := newPages(t)
	for _, test := range []struct {
		name       string
		page       func(http.ResponseWriter)
		want, none string
	}{
		{"no groups", func(w http.ResponseWriter) { p.Chats(w, pages.ChatsPage{}) }, "routd groups add NAME", "<li>"},
		{"no platform", func(w http.ResponseWriter) { p.Chats(w, pages.ChatsPage{Steps: true}) }, `<a href="/">Connect Telegram`, "<li>"},
		{"a group without a name", func(w http.ResponseWriter) {
			p.Chats(w, pages.ChatsPage{Groups: []pages.GroupLine{{WebChat: rows.WebChat{Folder: "a/b", Name: " "}}}})
		}, `<a href="/chat/a/b/">`, "<time"},
		{"a link that is used up", func(w http.ResponseWriter) { p.Login(w, 403, login.Form{}) }, "docker compose exec dashd dashd login", "<form"},
		{"a password", func(w http.ResponseWriter) { p.Login(w, 200, login.Form{Password: true, Next: "/chat/a"}) }, `name="next" value="/chat/a"`, "alert"},
		{"the newest row", func(w http.ResponseWriter) { p.Chat(w, pages.ChatPage{Folder: "a/b", LastID: 41}) }, `data-folder="a/b" data-assistant="" data-last-id="41"`, "Password"},
		{"no request", func(w http.ResponseWriter) { fragment(t, p, w, "approvals.html", pages.Approvals{}) }, "No request is waiting", "<form method=\"post\" action=\"/approvals"},
		{"a request", func(w http.ResponseWriter) {
			fragment(t, p, w, "approvals.html", pages.Approvals{Pending: []*factrows.Request{{Code: "ABCD-1234", ChatJID: "telegram:-5"}}, Defaults: map[string]string{"ABCD-1234": "telegram-dev"},
				Groups: []pages.GroupChats{{Folder: "eng"}, {Folder: "ops", Chats: []string{"Dev (telegram:-7)"}, More: 2}}})
		}, `placeholder="telegram-dev"`, "onbod is not running"},
		{"what is shared", func(w http.ResponseWriter) {
			fragment(t, p, w, "approvals.html", pages.Approvals{Pending: []*factrows.Request{{}}, Groups: []pages.GroupChats{{Folder: "ops", Chats: []string{"Dev (telegram:-7)"}, More: 2}}})
		}, `<option value="ops">shared with Dev (telegram:-7) and 2 more</option>`, "shared with no other chat"},
		{"an approval under way", func(w http.ResponseWriter) {
			fragment(t, p, w, "approvals.html", pages.Approvals{Pending: []*factrows.Request{{Code: "ABCD-1234", State: factrows.RequestPending, Folder: "eng"}}})
		}, "Approved into eng", "<form method=\"post\" action=\"/approvals"},
		{"first steps", func(w http.ResponseWriter) {
			fragment(t, p, w, "overview.html", pages.Overview{Steps: &pages.Steps{Platforms: []pages.Platform{{Name: "Telegram", Daemon: "teled", Secrets: []string{"TELEGRAM_BOT_TOKEN"}}}}})
		}, "<code>TELEGRAM_BOT_TOKEN</code>", "Operators:"},
		{"first steps, connected", func(w http.ResponseWriter) {
			fragment(t, p, w, "overview.html", pages.Overview{Steps: &pages.Steps{Operators: pages.Operators{Named: []string{"telegram:42"}}, Platforms: []pages.Platform{{Name: "Telegram", Connected: true}, {Name: "Slack", Secrets: []string{"SLACK_BOT_TOKEN"}}}}})
		}, "Connected to Telegram", "SLACK_BOT_TOKEN"},
		{"first steps, a request", func(w http.ResponseWriter) {
			fragment(t, p, w, "overview.html", pages.Overview{Pending: 1, Steps: &pages.Steps{Requests: []*factrows.Request{{Code: "ABCD-1234", ChatJID: "telegram:5"}}}})
		}, `action="/approvals/ABCD-1234/approve"`, "its request appears here"},
		{"no first steps", func(w http.ResponseWriter) { fragment(t, p, w, "overview.html", pages.Overview{}) }, "No daemon has reported yet", "First steps"},
		{"a fresh instance", func(w http.ResponseWriter) {
			fragment(t, p, w, "overview.html", pages.Overview{Facts: status.Facts{Now: 1}})
		}, "No daemon has reported yet", "oldest"},
		{"a daemon that is gone", func(w http.ResponseWriter) { fragment(t, p, w, "overview.html", sampleFacts(1e12)) }, "1 down", "4 well"},
		{"one machine", func(w http.ResponseWriter) { fragment(t, p, w, "overview.html", sampleFacts(1e12)) }, "Daemons", "Machines"},
		{"machines, in time", func(w http.ResponseWriter) { fragment(t, p, w, "overview.html", sampleMachines(1e12)) }, "not renewed for 8.0 s", "renewed for 2"},
		{"machines, one gone", func(w http.ResponseWriter) { fragment(t, p, w, "overview.html", sampleMachines(1e12)) }, `<span class="state bad">ended 28 s ago</span>`, "ended 2 "},
		{"times", func(w http.ResponseWriter) { fragment(t, p, w, "overview.html", sampleFacts(1e12)) }, `<time datetime="2001-09-09T01:42:40Z" title="2001-09-09 01:42:40 UTC">4 min ago</time>`, "never"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			test.page(w)
			body := w.Body.String()
			if _, main, framed := strings.Cut(body, "<main"); framed {
				body = main
			}
			if !strings.Contains(body, test.want) {
				t.Errorf("want %q in\n%s", test.want, body)
			}
			if strings.Contains(body, test.none) {
				t.Errorf("want no %q in\n%s", test.none, body)
			}
		})
	}
}

func TestAssets_OfChatPage_Served(t *testing.T) {
	p := newPages(t)
	w := httptest.NewRecorder()
	p.Chat(w, pages.ChatPage{Folder: "a"})
	links := regexp.MustCompile(`/assets/[^"]+`).FindAllString(w.Body.String(), -1)
	if len(links) != 7 {
		t.Fatalf("the chat page links to %v, want two icons, a manifest, two style sheets and two scripts", links)
	}
	fetch := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		p.Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	types := map[string]string{".png": "image/png", ".webmanifest": "application/manifest+json", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, link := range links {
		w := fetch(link)
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: status %d, %d bytes", link, w.Code, w.Body.Len())
		}
		if got, want := w.Header().Get("Content-Type"), types[link[strings.LastIndexByte(link, '.'):]]; got != want {
			t.Errorf("%s: type %q, want %q", link, got, want)
		}
		if got := w.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: Cache-Control %q", link, got)
		}
	}
	version := strings.Split(links[0], "/")[2]
	for _, path := range []string{
		"/assets/", "/assets/" + version, "/assets/" + version + "/", "/assets/" + version + "/none.js",
		"/assets/0000000000000000/chat.js", "/assets/chat.js", "/assets/" + version + "/../pages.go", "/assets/" + version + "/assets/chat.js",
	} {
		if w := fetch(path); w.Code != http.StatusNotFound || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, Cache-Control %q", path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
}

func TestSecure_EveryResponse_HasHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	pages.Secure(next).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusTeapot {
		t.Errorf("status %d, want that of the handler", w.Code)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; manifest-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff",
		"X-Frame-Options":         "DENY",
		"Referrer-Policy":         "same-origin",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestOverview_UnlistedTurns_Counted(t *testing.T) {
	p := newPages(t)
	turn := []*msg.Turn{{ID: 1}}
	w := httptest.NewRecorder()
	fragment(t, p, w, "overview.html", pages.Overview{Facts: status.Facts{Running: turn, RunningCount: 1, Queued: turn, QueuedCount: 52}})
	html := w.Body.String()
	if strings.Count(html, " more</a></p>") != 1 || !strings.Contains(html, "and 51 more") || !strings.Contains(html, "<dd>52</dd>") {
		t.Errorf("51 of 52 turns go unmentioned in\n%s", html)
	}
}

// A rule that is not closed puts all rules after it into its own block.
func TestStyle_Blocks_AreClosed(t *testing.T) {
	style, err := os.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	depth := 0
	for i, line := range strings.Split(string(style), "\n") {
		if strings.HasPrefix(line, "/*") && depth > 0 {
			t.Errorf("line %d: a comment of a part inside of a block", i+1)
		}
		depth += strings.Count(line, "{") - strings.Count(line, "}")
	}
	if depth != 0 {
		t.Errorf("%d blocks are not closed", depth)
	}
}
