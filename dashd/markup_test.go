package main

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"arizuko/dashd/internal/pages"
	chromium "arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/need"
)

// hostileRows is an instance in which each payload stands in every column that users, agents, platforms or programs write. A
// text has the payload and the place where it stands, so that a page can be asked for it.
type hostileRows struct {
	t    *testing.T
	db   *sql.DB
	data string

	received, turns []int64  // by payload: a message, and its turn
	failed          []int64  // an answer that failed
	groups          []string // a group
}

func at(payload, place string) string { return payload + " ·" + place }

func (h *hostileRows) put(query string, args ...any) int64 {
	h.t.Helper()
	res, err := h.db.Exec(query, args...)
	if err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
	id, err := res.LastInsertId()
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *hostileRows) json(v any) string {
	h.t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		h.t.Fatal(err)
	}
	return b.String()
}

// fill stores rows of all kinds with each payload.
func fill(t *testing.T, data string) *hostileRows {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(data, "arizuko.db")+"?_txlock=immediate&_busy_timeout=10000&_synchronous=OFF")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h := &hostileRows{t: t, db: db, data: data}
	for i, p := range payloads {
		h.conversation(i, p)
		h.webChat(i, p)
		h.setup(i, p)
	}
	return h
}

// conversation stores a chat of a platform: a message with its turn, run and tools, one that no route took, one that waits for
// an approval, and an answer that failed.
func (h *hostileRows) conversation(i int, p string) {
	h.t.Helper()
	jid := "telegram:" + at(p, "room")
	h.put(`INSERT INTO chats (jid, platform, kind, title, sticky_topic, sticky_group, last_seen_at) VALUES (?, 'telegram', 'group', ?, ?, ?, ?)`, jid, at(p, "title"), at(p, "pin"), at(p, "pinned"), 5+i)
	h.put(`INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, engaged_at) VALUES (?, ?, ?, ?, 5)`, jid, at(p, "place"), time.Now().Add(time.Hour).UnixMilli()+int64(i), at(p, "engaged"))
	run := h.put(`INSERT INTO runs (folder, topic, chat_jid, runtime, label, started_at, closed_at, ended_at) VALUES ('main', ?, ?, 'bwrap', ?, 6, 8, 9)`, "#"+at(p, "topic"), jid, at(p, "label"))
	h.put(`INSERT INTO session_log (run_id, started_at, folder, topic, result, error) VALUES (?, 6, 'main', ?, ?, ?)`, run, "#"+at(p, "topic"), at(p, "result"), at(p, "runerror"))
	h.write(fmt.Sprintf("logs/main/run-%d.log", run), at(p, "log"))
	in := `INSERT INTO messages (chat_jid, platform_id, direction, sender, sender_name, content, quote, attachments, topic, thread_id, reply_to_id, timestamp, received_at, source, disposition, reason, routed_to, decided_at, decision_seq, error)
		VALUES (?, ?, 'in', ?, ?, ?, ?, ?, ?, ?, ?, 5, 5, ?, ?, ?, ?, 6, ?, ?)`
	receive := func(n int, disposition, reason string, folder any) int64 {
		return h.put(in, jid, at(p, fmt.Sprint("id", n)), "telegram:"+at(p, "sender"), at(p, "name"), at(p, "text"), at(p, "quote"),
			h.json([]map[string]any{{"path": at(p, "path"), "name": at(p, "file"), "mime": at(p, "mime"), "size": 5, "error": at(p, "fileerror")}}),
			"#"+at(p, "topic"), at(p, "thread"), at(p, "replied"), at(p, "source"), disposition, reason, folder, 1000*n+i, at(p, "rowerror"))
	}
	row := receive(1, "routed", "route", "main")
	receive(2, "dropped", "no_route", nil)
	receive(3, "onboarding", "awaiting_approval", nil)
	turn := h.put(`INSERT INTO turns (run_id, kind, folder, chat_jid, topic, thread_id, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at, error)
		VALUES (?, 'conversation', 'main', ?, ?, ?, ?, ?, 4000, 'failed', 5, 6, 9, ?)`, run, jid, "#"+at(p, "topic"), at(p, "thread"), row, at(p, "surface"), at(p, "turnerror"))
	h.put(`UPDATE messages SET turn_id = ? WHERE id = ?`, turn, row)
	h.put(`INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (?, ?, ?, ?, 7)`, turn, at(p, "call"), at(p, "tool"), h.json(map[string]string{"text": at(p, "toolresult")}))
	h.put(`INSERT INTO undos (turn_id, redo, rest, folder, topic, by, state, answer, created_at, ended_at) VALUES (?, 0, 0, 'main', '', ?, 'refused', ?, 10, 11)`, turn, at(p, "undoer"), at(p, "undone"))
	out := h.put(`INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at, source, turn_id, out_state) VALUES (?, 'out', ?, ?, ?, 7, 7, 'agent', ?, 'failed')`, jid, "agent:"+at(p, "agent"), at(p, "assistant"), at(p, "answer"), turn)
	h.put(`INSERT INTO deliveries (message_id, part, state, attempts, platform_id, error_class, error, updated_at) VALUES (?, 0, 'failed', 1, ?, 'permanent', ?, 9)`, out, at(p, "partid"), at(p, "senderror"))
	h.received, h.turns, h.failed = append(h.received, row), append(h.turns, turn), append(h.failed, out)
}

// webChat stores what the web chat of the group main shows.
func (h *hostileRows) webChat(i int, p string) {
	h.t.Helper()
	topic := map[bool]string{true: "#" + p, false: ""}[i%20 == 3]
	files := h.json([]map[string]any{{"path": "media/x", "name": at(p, "webfile"), "mime": at("text/plain", p), "size": 5}})
	h.put(`INSERT INTO messages (chat_jid, platform_id, direction, sender, sender_name, content, attachments, topic, timestamp, received_at, source, disposition, reason, routed_to, decided_at, decision_seq)
		VALUES ('web:main', ?, 'in', ?, ?, ?, ?, ?, 5, 5, 'foreign', 'observed', 'route_observe', 'main', 6, ?)`, fmt.Sprint("w", i), "web:"+at(p, "web"), at(p, "webname"), at(p, "webtext"), files, topic, 9000+i)
	h.put(`INSERT INTO messages (chat_jid, direction, sender, sender_name, content, topic, timestamp, received_at, source, out_state) VALUES ('web:main', 'out', 'agent:main', ?, ?, ?, 6, 6, 'agent', 'sent')`, at(p, "webagent"), p, topic)
	poll := h.json(map[string]any{"question": at(p, "question"), "options": []string{at(p, "option"), "no"}})
	row := h.put(`INSERT INTO messages (chat_jid, direction, kind, sender, content, timestamp, received_at, source, out_state) VALUES ('web:main', 'out', 'poll', 'agent:main', ?, 6, 6, 'tool', 'sent')`, poll)
	id := h.put(`INSERT INTO polls (message_id, folder, chat_jid, question, options, state, created_at) VALUES (?, 'main', 'web:main', ?, ?, 'open', 6)`, row, at(p, "question"), h.json([]string{at(p, "option"), "no"}))
	h.put(`INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (?, ?, ?, '[1]', 7)`, id, "web:"+p, at(p, "voter"))
}

// setup stores what the other pages show.
func (h *hostileRows) setup(i int, p string) {
	h.t.Helper()
	folder := fmt.Sprintf("g%03d", i)
	h.groups = append(h.groups, folder)
	h.put(`INSERT INTO registered_groups (folder, name, created_at, config) VALUES (?, ?, 5, ?)`, folder, at(p, "group"), h.json(map[string]string{"assistant_name": at(p, "config")}))
	h.put(`INSERT INTO sessions (group_folder, topic, session_id, updated_at) VALUES (?, ?, ?, 5)`, folder, at(p, "sessiontopic"), at(p, "session"))
	h.write("groups/"+folder+"/"+strings.NewReplacer("/", "", "\x00", "").Replace(at(p, "filename")), "text")
	h.put(`INSERT INTO routes (seq, match, target, impulse_config) VALUES (?, ?, ?, ?)`, i, at(p, "match"), at(p, "target"), at(p, "impulse"))
	h.put(`INSERT INTO egress_rules (seq, host, action, author, created_at) VALUES (?, ?, 'deny', ?, 5)`, i, at(p, "rule"), at(p, "ruler"))
	h.put(`INSERT INTO egress_receipts (at, run_id, folder, method, host, port, path, state, reason, ended_at) VALUES (?, 1, 'main', 'GET', 'x', 443, ?, 'refused', ?, 9)`, time.Now().UnixMilli(), at(p, "request"), at(p, "refusal"))
	h.put(`INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at, source, disposition, reason, decided_at, decision_seq, error) VALUES (?1, 'in', ?1, 'ci', ?2, 5, 5, 'dashd', 'observed', 'hook_filter', 6, ?3, ?4)`, hookJID, at(p, "event"), 20_000+i, at(p, "left"))
	h.put(`INSERT INTO hook_refusals (chat_jid, at, reason) VALUES (?, 5, ?)`, hookJID, at(p, "refused"))
	h.put(`INSERT INTO push_subscriptions (login, endpoint, p256dh, auth, device, created_at, error) VALUES ('web:operator', ?, 'BA', 'AA', ?, 5, ?)`, at(p, fmt.Sprint("https://push.example/", i)), at(p, "browser"), at(p, "pusherror"))
	h.put(`INSERT INTO audit (at, who, what, detail) VALUES (5, ?, ?, ?)`, at(p, "who"), at(p, "what"), at(p, "detail"))
	for _, state := range []string{"active", "done"} {
		h.put(`INSERT INTO reminders (folder, chat_jid, topic, kind, body, cron, time_zone, state, next_slot, created_by, updated_by, error, created_at, updated_at) VALUES ('main', ?, ?, 'prompt', ?, ?, ?, ?, ?, ?, ?, ?, 1, 1)`,
			"telegram:"+at(p, "room"), at(p, "remtopic"), at(p, "body"), at(p, "cron"), at(p, "zone"), state, map[bool]any{true: 9_000_000_000_000 + int64(i)}[state == "active"], at(p, "maker"), at(p, "ender"), at(p, "remerror"))
	}
	h.put(`INSERT INTO daemons (name, version, started_at, heartbeat_at, connection, detail) VALUES (?, ?, 5, 5, 'degraded', ?)`, at(p, "daemon"), at(p, "version"), at(p, "state"))
}

func (h *hostileRows) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.data, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// requests replaces the requests by those of some payloads.
func (h *hostileRows) requests(some []string) {
	h.t.Helper()
	h.put(`DELETE FROM onboarding_requests`)
	for i, p := range some {
		for _, state := range []string{"pending", "rejected"} {
			h.put(`INSERT INTO onboarding_requests (code, chat_jid, kind, sender, sender_name, title, sample, state, reason, decided_by, decided_at, created_at) VALUES (?, ?, 'group', ?, ?, ?, ?, ?, ?, ?, ?, 5)`,
				fmt.Sprintf("%.1s%03d", strings.ToUpper(state), i), "telegram:"+at(p, "askroom"), "telegram:"+at(p, "asker"), at(p, "askername"), at(p, "asktitle"), at(p, "sample"), state, at(p, "reason"),
				map[bool]any{true: at(p, "decider")}[state == "rejected"], map[bool]any{true: 6}[state == "rejected"])
		}
	}
}

// intruders lists what is on a page and is not of the page: elements that load or run, handlers, styles and foreign addresses.
const intruders = `(() => {
	const found = [];
	const own = {
		script: (e) => e.getAttribute("src")?.startsWith("/assets/") && !e.textContent, link: (e) => e.getAttribute("href").startsWith("/assets/"),
		meta: (e) => !e.httpEquiv, svg: (e) => e.matches(".mark, .chart svg, .swatch, main svg.hidden, .votes svg, #composer button svg"), template: (e) => ["panel", "message", "unsent"].includes(e.id) || e.matches("body.chat > template"),
		form: (e) => new URL(e.action).origin === location.origin, img: (e) => e.matches(".files img") && new URL(e.src).origin === location.origin,
	};
	for (const e of document.querySelectorAll("*")) {
		const name = e.localName;
		if (own[name] ? !own[name](e) : /^(iframe|frame|object|embed|base|math|style|marquee|audio|video|source|track|animate|set|use|image|foreignobject|slot|applet|portal)$/.test(name)) found.push(e.outerHTML.slice(0, 200));
		for (const a of e.attributes) {
			if (e.id !== "text" && /^on|^style$|^srcdoc$|^popover|^http-equiv$|^shadowroot/.test(a.name)) found.push(e.outerHTML.slice(0, 200));
			if (/^(href|src|action|formaction|xlink:href|data-events|cite|poster|background)$/.test(a.name) && !e.closest("svg.mark")) {
				const to = new URL(a.value, location.href);
				const allowed = to.origin === location.origin && /^https?:$/.test(to.protocol) || e.matches(".body a[rel~=noopener][target=_blank]") && /^(https?|mailto):$/.test(to.protocol);
				if (!allowed) found.push("leads to " + a.value);
			}
		}
	}
	if ("hit" in window) found.push("a script ran");
	return found;
})()`

// visible is the text on the page, and what its fields have.
const visible = `document.body.textContent + [...document.querySelectorAll("input, textarea")].map((e) => e.value).join(" ")`

// next is the address of the next page of a list, "" for none.
const next = `[...document.querySelectorAll(".more a, .pager a")].filter((a) => a.pathname === location.pathname && /older|further|more |later|before/i.test(a.textContent)).at(-1)?.getAttribute("href") ?? ""`

// squeezed is a text without what pages may leave out: white space, characters that steer a screen, and bytes that are no text.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// hostilePage visits a page and those that follow in its list. Each must have the texts of all payloads given at all places.
func hostilePage(t *testing.T, p *chromium.Tab, base, path string, some []string, places ...string) {
	t.Helper()
	var shown strings.Builder
	for path != "" {
		p.Visit(base + path)
		for _, each := range chromium.Eval[[]string](p, intruders) {
			t.Errorf("%s: %s", path, each)
		}
		shown.WriteString(squeezed(chromium.Eval[string](p, visible)))
		path = chromium.Eval[string](p, next)
	}
	wantShown(t, shown.String(), some, places...)
}

func wantShown(t *testing.T, shown string, some []string, places ...string) {
	t.Helper()
	for _, payload := range some {
		for _, place := range places {
			if want := squeezed(at(payload, place)); !strings.Contains(shown, want) {
				t.Errorf("%s: %q is not shown", place, want)
			}
		}
	}
}

// TestPages_HostileRows_StayText: what users, agents and platforms wrote is shown as text on every page; none of it runs, loads
// or becomes a part of the page, neither with the content security policy nor without.
func TestPages_HostileRows_StayText(t *testing.T) {
	b := chromium.Start(t)
	data := dataFolder(t)
	h := fill(t, data)
	storeHook(t, data, "")
	o, d := newOnbod(t), newFake(t, "routd")
	s := serve(t, data, "ONBOD_URL="+o.URL, "ROUTD_URL="+d.URL, "GATED_URL="+hostileGated(t))
	base := "http://" + s.Addr
	policies := []bool{false} // what the policy would stop is seen without it
	if os.Getenv("VERIFY") != "" {
		policies = append(policies, true)
	}
	for _, policy := range policies {
		tab := b.Open(t)
		if !policy {
			tab.IgnoreCSP()
		}
		tab.Visit(cmp.Or(map[bool]string{false: s.first}[policy], base+"/"))
		for _, page := range []struct {
			path   string
			places []string
		}{
			{"/", []string{"daemon", "state"}},
			{"/messages", []string{"title", "name", "text", "answer", "webtext"}},
			{"/messages?sender=" + "x", nil},
			{"/turns", []string{"title", "topic", "turnerror"}},
			{"/lost?reason=permanent", nil},
			{"/chats", []string{"title", "room", "pin", "pinned", "engaged"}},
			{"/figures", nil},
			{pages.ChatPath("telegram:" + at(payloads[0], "room")), nil},
			{pages.PersonPath("telegram:" + at(payloads[0], "sender")), nil},
			{"/engagement", []string{"title", "room", "place", "engaged"}},
			{"/reminders", []string{"remtopic", "body", "cron", "zone", "maker"}},
			{"/reminders?group=main&state=done", []string{"body", "ender", "remerror"}},
			{"/polls", []string{"question", "option"}},
			{"/groups", []string{"group"}},
			{"/routes", []string{"match", "target"}},
			{"/routes/edit", []string{"match", "target"}},
			{"/settings", []string{"daemon", "state", "version"}},
			{"/notifications", []string{"browser", "pusherror"}},
			{"/audit", []string{"who", "what", "detail"}},
			{"/access", nil},
			{"/egress", []string{"rule", "request"}},
			{"/search?q=title", nil},
			{"/search?q=name", nil},
			{"/search?q=text", nil},
			{"/search?q=g0", nil},
			{hookURL, []string{"event", "left"}},
			{"/chat/", nil},
		} {
			name := fmt.Sprintf("%s policy %t", page.path, policy)
			t.Run(name, func(t *testing.T) { hostilePage(t, tab.WithTest(t), base, page.path, payloads, page.places...) })
		}
		t.Run(fmt.Sprintf("search policy %t", policy), func(t *testing.T) {
			for _, payload := range payloads {
				hostilePage(t, tab.WithTest(t), base, "/search?"+url.Values{"q": {payload[:min(len(payload), 200)]}}.Encode(), nil)
			}
		})
		t.Run(fmt.Sprintf("lost policy %t", policy), func(t *testing.T) { hostileLost(t, tab.WithTest(t), base) })
		t.Run(fmt.Sprintf("approvals policy %t", policy), func(t *testing.T) {
			for some := range slices.Chunk(payloads, 20) {
				h.requests(some)
				hostilePage(t, tab.WithTest(t), base, "/approvals", some, "askroom", "asker", "askername", "asktitle", "sample", "reason", "decider")
				hostilePage(t, tab.WithTest(t), base, "/", nil)
			}
		})
		t.Run(fmt.Sprintf("chat policy %t", policy), func(t *testing.T) { hostileChat(t, tab.WithTest(t), base) })
	}
	tab := b.Open(t)
	t.Run("one of each", func(t *testing.T) {
		need.Verify(t)
		h.details(tab.WithTest(t), base)
	})
}

// hostileGated answers with payloads: the prompt of a turn, and refusals.
func hostileGated(t *testing.T) string {
	t.Helper()
	server := peer("gated", func(w http.ResponseWriter, r *http.Request) {
		answer := any(map[string]string{"prompt": strings.Join(payloads, "\n")})
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusConflict)
			answer = map[string]any{"error": map[string]string{"kind": "conflict", "message": strings.Join(payloads, "\n")}}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(server.Close)
	return server.URL
}

// hostileLost visits the lists of all reasons.
func hostileLost(t *testing.T, p *chromium.Tab, base string) {
	p.Visit(base + "/lost")
	lists := chromium.Eval[[]string](p, `[...document.querySelectorAll(".counts a")].map((a) => a.getAttribute("href"))`)
	if len(lists) != 3 {
		t.Fatalf("the reasons: %q", lists)
	}
	for i, place := range []string{"answer", "text", "text"} {
		hostilePage(t, p, base, lists[i], payloads, "title", place)
	}
}

// hostileChat opens the web chat, whole, and each of its topics.
func hostileChat(t *testing.T, p *chromium.Tab, base string) {
	p.Visit(base + "/chat/main")
	p.WaitConnected()
	p.Wait(`document.querySelectorAll("[role=tab]").length > 5`)
	var shown strings.Builder
	for i := range chromium.Eval[int](p, `document.querySelectorAll("[role=tab]").length`) {
		chromium.Eval[bool](p, fmt.Sprintf(`(document.querySelectorAll("[role=tab]")[%d].click(), true)`, i))
		p.Wait(`document.querySelector(".panel:not([hidden]) .log").ariaBusy === "false" && document.querySelector(".panel:not([hidden]) .message")`)
		for chromium.Eval[bool](p, `!document.querySelector(".panel:not([hidden]) .earlier").hidden`) {
			before := chromium.Eval[int](p, `document.querySelectorAll(".message").length`)
			chromium.Eval[bool](p, `(document.querySelector(".panel:not([hidden]) .earlier").click(), true)`)
			p.Wait(fmt.Sprintf(`document.querySelectorAll(".message").length > %d && document.querySelector(".panel:not([hidden]) .log").ariaBusy === "false"`, before))
		}
	}
	p.WaitLayout()
	for _, each := range chromium.Eval[[]string](p, intruders) {
		t.Error(each)
	}
	shown.WriteString(squeezed(chromium.Eval[string](p, visible)))
	wantShown(t, shown.String(), payloads, "webtext", "webfile")
	if n := chromium.Eval[int](p, `document.querySelectorAll(".message.out .body").length`); n != 2*len(payloads) {
		t.Errorf("%d answers and polls", n)
	}
}

// details opens one page about each payload, why, a turn or a group, and then the prompt of a turn, and a refusal. Each page shows
// its payload at all of its places.
func (h *hostileRows) details(p *chromium.Tab, base string) {
	for i, payload := range payloads {
		one := []string{payload}
		switch i % 4 {
		case 0:
			hostilePage(h.t, p, base, fmt.Sprintf("/messages/%d", h.received[i]), one, "title", "name", "sender", "text", "thread", "quote", "source")
		case 1:
			hostilePage(h.t, p, base, fmt.Sprintf("/messages/%d", h.failed[i]), one, "answer", "senderror")
		case 2:
			hostilePage(h.t, p, base, fmt.Sprintf("/turns/%d", h.turns[i]), one, "title", "name", "text", "answer", "tool", "runerror", "log", "turnerror", "thread", "surface", "undoer", "undone")
		case 3:
			hostilePage(h.t, p, base, "/groups/"+h.groups[i], one, "group", "sessiontopic")
			config := strings.TrimSpace(h.json(at(payload, "config")))
			if shown := chromium.Eval[string](p, `document.querySelector("#config").value`); !strings.Contains(shown, config) {
				h.t.Errorf("config: %q does not have %q", shown, config)
			}
		}
	}
	p.Visit(fmt.Sprintf("%s/turns/%d/context", base, h.turns[0]))
	prompt := squeezed(chromium.Eval[string](p, `document.querySelector("pre").textContent`))
	for _, payload := range payloads {
		if !strings.Contains(prompt, squeezed(payload)) {
			h.t.Errorf("the prompt does not have %q", payload)
		}
	}
	for _, each := range chromium.Eval[[]string](p, intruders) {
		h.t.Error(each)
	}
	p.Visit(fmt.Sprintf("%s/turns/%d", base, h.turns[0]))
	p.Follow(func() { p.Click(`form[action$="/retry"] button`) })
	if refusal := chromium.Eval[string](p, `document.querySelector(".problem").textContent`); !strings.Contains(refusal, "<script>hit=1</script>") {
		h.t.Errorf("the refusal: %q", refusal)
	}
	for _, each := range chromium.Eval[[]string](p, intruders) {
		h.t.Error(each)
	}
}
