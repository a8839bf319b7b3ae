package pages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/need"
)

const (
	isLive         = `document.querySelector("#connection").textContent === "Live"`
	isReconnecting = `document.querySelector("#connection").textContent.includes("Reconnecting…")`
	// noWorker makes a browser one without shared workers, as some phones have.
	noWorker = `delete window.SharedWorker`
	// recording notes each text that the connection has.
	recording = `window.texts = [];
		addEventListener("DOMContentLoaded", () => {
			for (const id of ["connection", "connection-spoken"]) {
				const element = document.getElementById(id);
				if (element) new MutationObserver(() => window.texts.push(id + ": " + element.textContent)).observe(element, {childList: true});
			}
		})`
)

// connection is what a page says of its connection.
const connection = `document.querySelector("#connection").textContent`

// TestLive_InBrowser is one test so that its parts share one browser.
func TestLive_InBrowser(t *testing.T) {
	b := browser.Start(t)
	for _, test := range []struct {
		name   string
		run    func(*testing.T, *backend, *browser.Browser)
		verify bool // only in `make verify`: it waits long for little
	}{
		{"twelve pages", twelvePages, false},
		{"without shared workers", withoutWorkers, false},
		{"a worker that does not start", workerDoesNotStart, false},
		{"server restarted", serverRestarted, false},
		{"short interruption", shortInterruption, true},
		{"long interruption", longInterruption, true},
		{"a page crashes", pageCrashes, true},
		{"back and forward", backAndForward, false},
		{"sleep", sleepWithWorker, true},
		{"held back", heldBack, true},
		{"login ended", loginEndedEverywhere, false},
		{"another login", anotherLogin, false},
		{"too many pages", tooManyPages, true},
		{"server hangs", serverHangs, true},
		{"offline", offline, true},
		{"upgrade", upgrade, false},
		{"hidden view", hiddenView, true},
		{"view that is gone", viewThatIsGone, false},
		{"storm", storm, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.verify {
				need.Verify(t)
			}
			// They wait most of the time. But an interruption is not short on a busy machine, and a crash may hit other pages.
			if test.name != "short interruption" && test.name != "a page crashes" {
				t.Parallel()
			}
			test.run(t, newBackend(t), b)
		})
	}
}

// visited opens n pages, each at the next path.
func visited(t *testing.T, server *backend, b *browser.Browser, n int, paths ...string) (all []*browser.Tab) {
	t.Helper()
	for i := range n {
		p := b.Open(t)
		p.Prepare(recording)
		p.Visit(server.url + paths[i%len(paths)])
		all = append(all, p)
	}
	for _, p := range all {
		p.Wait(isLive)
	}
	return all
}

func (b *backend) openStreams() int { return get(b, func() int { return b.open }) }

// wantStreams waits until this many streams are open.
func (b *backend) wantStreams(t *testing.T, want int) {
	t.Helper()
	b.await(t, "open streams", b.openStreams, want)
}

// wantPosts waits until this many posts have come.
func (b *backend) wantPosts(t *testing.T, want int) {
	t.Helper()
	b.await(t, "posts", b.posted, want)
}

func (b *backend) await(t *testing.T, what string, count func() int, want int) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for count() != want {
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		case <-deadline.C:
			t.Fatalf("%s: %d, want %d", what, count(), want)
		}
	}
}

func twelvePages(t *testing.T, server *backend, b *browser.Browser) {
	all := visited(t, server, b, 12, chat, chat, "/")
	for round := range 3 {
		server.say("", fmt.Sprintf("<p>answer %d</p>", round))
		facts := fmt.Sprintf("<p>round %d</p>", round)
		server.set(func() { server.facts = facts; server.typing = []string{"", "#deploy"}[:1+round%2] })
		for i, p := range all {
			if i%3 == 2 {
				p.Wait(`document.querySelector("#facts").innerHTML === ` + encode(facts))
				continue
			}
			p.Wait(countOf(".message", round+1))
			p.Wait(`document.querySelector(".panel .typing").textContent !== ""`)
		}
	}
	all[0].SendMessage("from the first")
	for i, p := range all {
		if i%3 != 2 {
			p.Wait(countOf(".panel:not([hidden]) .log .message", 4))
			expect(t, fmt.Sprint("page ", i), p.MessageBodies(".log .message"), []string{"answer 0", "answer 1", "answer 2", "from the first"})
		}
	}
	expect(t, "streams that are open", server.openStreams(), 1)
	expect(t, "streams that were opened", get(server, func() int { return server.streams }), 1)
	for _, p := range all[1:] {
		p.Close()
	}
	server.say("", "<p>to the last</p>")
	all[0].Wait(countOf(".panel:not([hidden]) .log .message", 5))
	expect(t, "streams for the last page", server.openStreams(), 1)
	all[0].Close()
	server.wantStreams(t, 0)
}

// quickHidden makes a minute short for a hidden page, which hide() makes it.
const quickHidden = noWorker + `;
	window.setTimeout = ((set) => (act, delay, ...rest) => set(act, delay === 60_000 ? 50 : delay, ...rest))(setTimeout);
	window.hide = (hidden) => {
		Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
		document.dispatchEvent(new Event("visibilitychange"));
		return true;
	}`

func withoutWorkers(t *testing.T, server *backend, b *browser.Browser) {
	var all []*browser.Tab
	for _, path := range []string{chat, "/", chat} {
		p := b.Open(t)
		p.Prepare(quickHidden)
		p.Visit(server.url + path)
		p.Wait(isLive)
		all = append(all, p)
	}
	expect(t, "streams", server.openStreams(), 3)
	browser.Eval[bool](all[1], `hide(true)`)
	browser.Eval[bool](all[2], `hide(true)`)
	server.wantStreams(t, 1)
	server.say("", "<p>meanwhile</p>")
	server.set(func() { server.facts = "<p>meanwhile</p>" })
	all[0].Wait(countOf(".message", 1))
	expect(t, "messages of a page without a stream", browser.Eval[int](all[2], `document.querySelectorAll(".message").length`), 0)
	browser.Eval[bool](all[1], `hide(false)`)
	browser.Eval[bool](all[2], `hide(false)`)
	all[1].Wait(`document.querySelector("#facts").textContent === "meanwhile"`)
	all[2].Wait(countOf(".message", 1))
	server.wantStreams(t, 3)
	browser.Eval[bool](all[2], `hide(true) && hide(false)`) // a short look elsewhere
	all[2].WaitLayout()
	expect(t, "streams that were opened", get(server, func() int { return server.streams }), 5)
}

func workerDoesNotStart(t *testing.T, server *backend, b *browser.Browser) {
	for _, broken := range []string{
		`window.SharedWorker = class { constructor() { throw new DOMException("no", "SecurityError"); } }`,
		`window.SharedWorker = class extends EventTarget {
			port = new MessageChannel().port1;
			constructor() { super(); setTimeout(() => this.dispatchEvent(new Event("error"))); }
		}`,
		`window.SharedWorker = class extends EventTarget { port = new MessageChannel().port1; };
		window.setTimeout = ((set) => (act, delay, ...rest) => set(act, delay === 10_000 ? 50 : delay, ...rest))(setTimeout)`,
	} {
		p := b.Open(t)
		p.Prepare(broken)
		p.Visit(server.url + chat)
		p.WaitConnected()
		p.Wait(isLive)
		expect(t, "streams", server.openStreams(), 1)
		p.Close()
		server.wantStreams(t, 0)
	}
}

func serverRestarted(t *testing.T, server *backend, b *browser.Browser) {
	all := visited(t, server, b, 3, chat, chat, "/")
	server.say("", "<p>before</p>")
	all[0].Wait(countOf(".message", 1))
	server.set(func() { server.stop, server.down = true, false })
	server.wantStreams(t, 0)
	server.set(func() { server.stop, server.down = false, true })
	for _, p := range all {
		p.Wait(`document.querySelector("#connection").textContent.startsWith("The server stopped at ")`)
		p.Wait(isReconnecting)
	}
	for _, p := range []*browser.Tab{all[0], all[2]} {
		p.Resize(375, 800)
		p.CheckFits()
		p.CheckContrast()
	}
	expect(t, "advice in a chat", browser.Eval[bool](all[0], connection+`.includes("Messages you send now go out once you are connected again.")`), true)
	expect(t, "advice elsewhere", browser.Eval[bool](all[2], connection+`.includes("sent later")`), false)
	all[1].SendMessage("written meanwhile")
	server.set(func() { server.down = false; server.facts = "<p>after</p>" })
	server.say("", "<p>after</p>")
	for _, p := range all {
		p.Wait(isLive)
	}
	all[2].Wait(`document.querySelector("#facts").textContent === "after"`)
	for _, p := range all[:2] {
		p.Wait(countOf(".log .message", 3))
		expect(t, "first", p.MessageBodies(".log .message")[0], "before")
	}
	expect(t, "streams", server.openStreams(), 1)
}

// shortInterruption: a reconnect of less than two seconds shows nowhere.
func shortInterruption(t *testing.T, server *backend, b *browser.Browser) {
	server.typing = []string{""}
	all := visited(t, server, b, 2, chat, "/")
	all[0].Wait(`document.querySelector(".panel .typing").textContent !== ""`)
	browser.Eval[bool](all[0], `(window.flickers = 0, new MutationObserver(() => window.flickers++).observe(document.querySelector(".panel .typing"), {childList: true, characterData: true, subtree: true}), true)`)
	for range 2 {
		before := get(server, func() int { return server.streams })
		server.set(func() { server.cuts++ })
		for get(server, func() int { return server.streams }) == before {
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // waits for a real browser
		}
	}
	server.say("", "<p>after</p>")
	all[0].Wait(countOf(".message", 1))
	for i, p := range all {
		expect(t, fmt.Sprint("what page ", i, " has shown"), browser.Eval[[]string](p, `window.texts`), []string{"connection: Live"})
	}
	expect(t, "changes of who is working", browser.Eval[int](all[0], `window.flickers`), 0)
}

// serverHangs: its connections stay open, and nothing comes.
func serverHangs(t *testing.T, server *backend, b *browser.Browser) {
	for i, p := range visited(t, server, b, 2, chat, "/") {
		if i == 0 {
			server.set(func() { server.deaf, server.mute = 1, true })
		}
		p.Wait(isReconnecting)
	}
}

// longInterruption: a screen reader says once that there is no connection, and once that there is one again.
func longInterruption(t *testing.T, server *backend, b *browser.Browser) {
	p := visited(t, server, b, 1, chat)[0]
	browser.Eval[int](p, `window.texts.length = 0`) // what a slow first connection has said
	server.set(func() { server.down = true })
	p.Wait(isReconnecting)
	server.set(func() { server.down, server.full = false, true })
	p.Wait(connection + `.includes("too many pages")`)
	server.set(func() { server.down, server.full = true, false })
	p.Wait(isReconnecting)
	server.set(func() { server.down = false })
	p.Wait(isLive)
	spoken := browser.Eval[[]string](p, `window.texts.filter((text) => text.startsWith("connection-spoken: "))`)
	if len(spoken) != 2 || !strings.Contains(spoken[0], "No connection since") || !strings.HasSuffix(spoken[1], ": Connected again.") {
		t.Errorf("%q", spoken)
	}
	expect(t, "the role", browser.Eval[string](p, `document.getElementById("connection-spoken").role`), "status")
}

// pageCrashes: the worker may run in the process of the page that crashes.
func pageCrashes(t *testing.T, server *backend, b *browser.Browser) {
	all := visited(t, server, b, 4, chat)
	all[0].Crash()
	all[1].Crash()
	server.say("", "<p>after the crash</p>")
	for _, p := range all[2:] {
		p.Wait(countOf(".message", 1))
		p.Wait(isLive)
	}
	server.wantStreams(t, 1)
}

func backAndForward(t *testing.T, server *backend, b *browser.Browser) {
	all := visited(t, server, b, 2, chat)
	leave := func(p *browser.Tab, event string) {
		browser.Eval[bool](p, `dispatchEvent(new PageTransitionEvent("`+event+`", {persisted: true}))`)
	}
	leave(all[0], "pagehide")
	server.say("", "<p>1</p>")
	all[1].Wait(countOf(".message", 1))
	expect(t, "a page that was left", browser.Eval[int](all[0], `document.querySelectorAll(".message").length`), 0)
	leave(all[1], "pagehide")
	server.wantStreams(t, 0)
	server.say("", "<p>2</p>")
	leave(all[0], "pageshow")
	leave(all[1], "pageshow")
	for _, p := range all {
		p.Wait(countOf(".message", 2))
		expect(t, "messages", p.MessageBodies(".message"), []string{"1", "2"})
	}
	server.wantStreams(t, 1)
}

// sleepWithWorker: after a sleep the connection is dead, which can be noticed only by the time that has passed.
func sleepWithWorker(t *testing.T, server *backend, b *browser.Browser) {
	all := visited(t, server, b, 2, chat)
	server.set(func() { server.deaf = 1 })
	server.say("", "<p>meanwhile</p>")
	worker := b.SharedWorker(t, server.url)
	browser.Eval[bool](worker, `((now) => { Date.now = () => now() + 30_000; return true; })(Date.now.bind(Date))`)
	browser.Eval[bool](all[0], `document.dispatchEvent(new Event("visibilitychange"))`)
	for _, p := range all {
		p.Wait(countOf(".message", 1))
	}
	server.say("", "<p>later</p>")
	server.set(func() { server.deaf = 2 })
	server.say("", "<p>in the dark</p>")
	browser.Eval[bool](worker, `((now) => { Date.now = () => now() + 60_000; return true; })(Date.now.bind(Date))`)
	for _, p := range all { // by itself, some seconds later
		p.Wait(countOf(".message", 3))
		expect(t, "messages", p.MessageBodies(".message"), []string{"meanwhile", "later", "in the dark"})
	}
	expect(t, "streams", get(server, func() int { return server.streams }), 3)
}

// heldBack: a stream that never begins, as behind a proxy that holds it back, is opened again.
func heldBack(t *testing.T, server *backend, b *browser.Browser) {
	server.mute = true
	p := b.Open(t)
	p.Prepare(noWorker)
	p.Visit(server.url + chat)
	server.wantStreams(t, 1)
	p.Wait(connection + ` === "Connecting… Messages you send now go out once you are connected again."`)
	server.set(func() { server.mute = false })
	browser.Eval[bool](p, `((now) => { Date.now = () => now() + 60_000; return true; })(Date.now.bind(Date))`)
	p.Wait(isLive)
	server.wantStreams(t, 1)
}

func loginEndedEverywhere(t *testing.T, server *backend, b *browser.Browser) {
	all := visited(t, server, b, 3, chat, "/")
	server.set(func() { server.out = true })
	for _, p := range all {
		p.Wait(connection + ` === "Your login has ended. Log in again."`)
	}
	expect(t, "the link", browser.Eval[string](all[1], `document.querySelector("#connection a").getAttribute("href")`), "/login?next=%2F")
	expect(t, "spoken", browser.Eval[string](all[1], `document.querySelector("#connection-spoken").textContent`), "Your login has ended. Log in again.")
	streams := get(server, func() int { return server.streams })
	server.set(func() { server.out = false })
	server.say("", "<p>after the login</p>")
	again := visited(t, server, b, 1, chat)[0] // a page after the login wakes the others
	again.Wait(countOf(".message", 1))
	for _, p := range all {
		p.Wait(isLive)
	}
	all[0].Wait(countOf(".message", 1))
	expect(t, "streams", get(server, func() int { return server.streams })-streams, 1)
}

func anotherLogin(t *testing.T, server *backend, b *browser.Browser) {
	all := visited(t, server, b, 2, chat, "/")
	server.set(func() { server.login = "web:eve"; server.cuts++ })
	for _, p := range all {
		p.Wait(connection + ` === "Another user has logged in with this browser. Reload the page."`)
	}
	server.wantStreams(t, 0)
	fetched := get(server, func() int { return len(server.fetched) + server.fetches })
	server.say("", "<p>for another user</p>")
	server.set(func() { server.facts = "<p>for another user</p>" })
	browser.Eval[bool](all[0], `document.dispatchEvent(new Event("visibilitychange"))`)
	all[0].WaitLayout()
	expect(t, "requests of pages that have stopped", get(server, func() int { return len(server.fetched) + server.fetches }), fetched)
	expect(t, "messages", browser.Eval[int](all[0], `document.querySelectorAll(".message").length`), 0)
}

func tooManyPages(t *testing.T, server *backend, b *browser.Browser) {
	server.full = true
	p := b.Open(t)
	p.Visit(server.url + chat)
	p.Wait(connection + `.includes("too many pages are open (500): close some. Trying again…")`)
	server.set(func() { server.full = false })
	p.Wait(isLive)
}

func offline(t *testing.T, server *backend, b *browser.Browser) {
	for _, script := range []string{recording, noWorker} {
		p := b.Open(t)
		p.Prepare(script)
		p.Visit(server.url + chat)
		p.WaitConnected()
		p.SetOffline(true)
		p.Wait(connection + `.startsWith("You have been offline since ")`)
		p.SendMessage("written offline")
		p.Wait(countOf(".message.pending", 1))
		rows := server.stored()
		server.say("", "<p>meanwhile</p>")
		p.SetOffline(false)
		p.Wait(isLive)
		p.Wait(countOf(".panel:not([hidden]) .log .message", rows+2))
		bodies := p.MessageBodies(".log .message")
		expect(t, "messages", bodies[rows:], []string{"meanwhile", "written offline"})
		p.Close()
		server.wantStreams(t, 0)
	}
}
