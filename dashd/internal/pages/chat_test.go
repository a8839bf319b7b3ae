package pages_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/browser"
)

const chat = "/chat/acme/eng"

// TestChatPage_InBrowser is one test so that its parts share one browser. Each has a server, and so a
// localStorage, and its own tab.
func TestChatPage_InBrowser(t *testing.T) {
	b := browser.Start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *backend, *browser.Tab)
	}{
		{"first message", firstMessage},
		{"row before answer", rowBeforeAnswer},
		{"kept while down", keptWhileDown},
		{"kept over a reload", keptOverReload},
		{"answer lost", answerLost},
		{"refused", refused},
		{"reconnect", reconnect},
		{"sleep", sleep},
		{"login ended", loginEnded},
		{"refusal older than the login", refusalOlderThanLogin},
		{"earlier history", earlierHistory},
		{"reading further up", readingFurtherUp},
		{"pictures that load late", latePictures},
		{"database restored", databaseRestored},
		{"tabs", tabStrip},
		{"bare topic", bareTopic},
		{"drafts", drafts},
		{"typing", typing},
		{"work live", workLive},
		{"work read out", workReadOut},
		{"work with hostile text", workHostile},
		{"work over a reload", workOverReload},
		{"work in a line", workInALine},
		{"work not shown", workNotShown},
		{"stop button", stopButton},
		{"undo button", undoButton},
		{"unread", unread},
		{"hostile text", hostileText},
		{"many tabs", manyTabs},
		{"keyboard alone", keyboardAlone},
		{"a notice of gated", noticeOfGated},
		{"no lock, no random id", plainHTTP},
		{"touch", touch},
		{"words for times", wordsForTimes},
		{"first screen", firstScreen},
		{"files sent", filesSent},
		{"files refused by the page", filesRefusedByThePage},
		{"files dropped and pasted", filesDroppedAndPasted},
		{"files kept over a reload", filesKeptOverReload},
		{"files cancelled", filesCancelled},
		{"files, answer lost", filesAnswerLost},
		{"files not kept", filesNotKept},
		{"files with hostile names", filesHostileNames},
		{"copies and colours", copiesAndColours},
		{"search", searchInChat},
		{"try again", tryAgain},
		{"edit and resend", editAndResend},
		{"chats beside", chatsBeside},
		{"topics are renamed and put away", topicsAreRenamedAndPutAway},
		{"answered elsewhere", answeredElsewhere},
		{"pictures keep their room", picturesKeepTheirRoom},
		{"overview", liveOverview},
		{"keys", keys},
		{"approvals", liveApprovals},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newBackend(t), b.Open(t)) })
	}
	t.Run("two pages", func(t *testing.T) { twoPages(t, newBackend(t), b.Open(t), b.Open(t)) })
	t.Run("files of two pages", func(t *testing.T) { filesTwoPages(t, newBackend(t), b.Open(t), b.Open(t)) })
	t.Run("looks", func(t *testing.T) { looks(t, b) })
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func countOf(css string, n int) string {
	return fmt.Sprintf("document.querySelectorAll(%s).length === %d", encode(css), n)
}

func firstMessage(t *testing.T, b *backend, p *browser.Tab) {
	hold := make(chan struct{})
	b.hold, b.deaf = hold, 1
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.Wait(`document.querySelector(".empty").checkVisibility()`)
	p.SendMessage("Hello there")
	p.Wait(countOf(".message.pending", 1))
	expect(t, "shown as pending", p.MessageBodies(".message"), []string{"Hello there"})
	expect(t, "what remains in the box", browser.Eval[string](p, `document.getElementById("text").value`), "")
	close(hold)
	p.Wait(countOf(".message.in[data-id='1']", 1))
	expect(t, "pending once confirmed", p.MessageBodies(".message.pending"), []string{})

	p.Do(chromedp.Reload())
	p.WaitConnected()
	b.say("", "<p>Hello <em>you</em></p>")
	p.Wait(countOf(".message.out", 1))
	expect(t, "the log", p.MessageBodies(".message"), []string{"Hello there", "Hello you"})
	expect(t, "posts", b.posted(), 1)
}

func reconnect(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.say("", "<p>1</p>")
	p.Wait(countOf(".message", 1))
	b.set(func() { b.down = true })
	p.Wait(isReconnecting)
	b.say("", "<p>2</p>")
	b.say("#deploy", "<p>elsewhere</p>")
	b.say("", "<p>3</p>")
	b.set(func() { b.down = false })
	p.Wait(countOf(".panel:not([hidden]) .message", 3))
	b.say("", "<p>4</p>")
	p.Wait(countOf(".panel:not([hidden]) .message", 4))
	expect(t, "the log", p.MessageBodies(".message"), []string{"1", "2", "3", "4"})
	expect(t, "streams", get(b, func() int { return b.streams }), 2)
}

// sleep: the connection is dead, and the page can notice that only by the time that has passed.
func sleep(t *testing.T, b *backend, p *browser.Tab) {
	p.Prepare(noWorker)
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.say("", "<p>before</p>")
	p.Wait(countOf(".message", 1))
	b.set(func() { b.deaf = 1 })
	b.say("", "<p>meanwhile</p>")
	browser.Eval[bool](p, `((now) => { Date.now = () => now() + 60_000; document.dispatchEvent(new Event("visibilitychange")); return true; })(Date.now.bind(Date))`)
	p.Wait(countOf(".message", 2))
	expect(t, "streams", get(b, func() int { return b.streams }), 2)
}

func loginEnded(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.set(func() { b.out = true })
	p.Wait(`document.querySelector("#connection a")`)
	expect(t, "the link", browser.Eval[string](p, `document.querySelector("#connection a").getAttribute("href")`), "/login?next=%2Fchat%2Facme%2Feng")
	p.SendMessage("after the login")
	p.Wait(countOf(".pending", 1))
	b.set(func() { b.out = false })
	browser.Eval[bool](p, `document.dispatchEvent(new Event("visibilitychange"))`) // back from the login in another tab
	p.Wait(countOf(".log .message.in", 1))
	p.Wait(isLive)
}

// refusalOlderThanLogin: a request was refused, and its answer comes after the user has logged in again.
func refusalOlderThanLogin(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	hold := make(chan struct{})
	b.set(func() { b.deny, b.hold = http.StatusUnauthorized, hold })
	p.SendMessage("sent twice")
	b.wantPosts(t, 1)
	b.set(func() { b.deny, b.hold = 0, nil })
	close(hold)
	p.Wait(countOf(".log .message.in:not(.pending)", 1))
	p.Wait(isLive)
}

func numbered(from, to int) (texts []string) {
	for i := from; i <= to; i++ {
		texts = append(texts, fmt.Sprintf("message %d", i))
	}
	return texts
}

func earlierHistory(t *testing.T, b *backend, p *browser.Tab) {
	for _, text := range numbered(1, 120) {
		b.say("", "<p>"+text+"</p>")
	}
	p.Visit(b.url + chat)
	p.Wait(countOf(".message", 50))
	p.Wait(isLive) // until then, words about the connection may take a line above
	expect(t, "at first", p.MessageBodies(".message"), numbered(71, 120))
	expect(t, "is at the end", browser.Eval[bool](p, `(e => e.scrollHeight - e.scrollTop - e.clientHeight < 2)(document.querySelector(".panel"))`), true)

	// Scrolled to the top: more is loaded, and the visible messages stay in place.
	top := `document.querySelector("[data-id='71']").getBoundingClientRect().top`
	before := browser.Eval[float64](p, `(document.querySelector(".panel").scrollTop = 0, `+top+`)`)
	p.Wait(countOf(".message", 100))
	if after := browser.Eval[float64](p, top); after < before-1 || after > before+1 {
		t.Errorf("message 71 moved from %v to %v", before, after)
	}
	p.Do(chromedp.Focus(chromedp.CSS(".earlier")))
	p.PressEnter()
	p.Wait(countOf(".message", 120))
	expect(t, "in the end", p.MessageBodies(".message"), numbered(1, 120))
	p.Wait(`document.querySelector(".earlier").hidden`)
}

func readingFurtherUp(t *testing.T, b *backend, p *browser.Tab) {
	for _, text := range numbered(1, 40) {
		b.say("", "<p>"+text+"</p>")
	}
	p.Visit(b.url + chat)
	p.Wait(countOf(".message", 40))
	place := func() float64 { return browser.Eval[float64](p, `document.querySelector(".panel").scrollTop`) }
	browser.Eval[float64](p, `document.querySelector(".panel").scrollTop = 200`)
	p.WaitLayout()
	b.say("", "<p>news</p>")
	p.Wait(countOf(".message", 41))
	expect(t, "the place", place(), 200)
	p.Wait(`document.querySelector(".newer").checkVisibility()`)
	p.Click(".newer")
	p.Wait(`(e => e.scrollHeight - e.scrollTop - e.clientHeight < 2)(document.querySelector(".panel"))`)
	b.say("", "<p>more news</p>")
	p.Wait(countOf(".message", 42))
	p.Wait(`(e => e.scrollHeight - e.scrollTop - e.clientHeight < 2)(document.querySelector(".panel"))`)
	expect(t, "the button", browser.Eval[bool](p, `document.querySelector(".newer").hidden`), true)

	// At the end the button goes away, but not with the focus of a user who tabs through it.
	browser.Eval[float64](p, `document.querySelector(".panel").scrollTop = 0`)
	p.Wait(`document.querySelector(".newer").checkVisibility()`)
	browser.Eval[bool](p, `(document.querySelector(".newer").focus(), document.querySelector(".panel").scrollTop = 1e6, true)`)
	p.WaitLayout()
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.className`), "newer")
	p.TypeKeys(kb.Tab)
	p.Wait(`document.querySelector(".newer").hidden`)

	// The scroll position is kept while another tab is open.
	browser.Eval[float64](p, `document.querySelector(".panel").scrollTop = 300`)
	p.SendMessage("#other")
	p.Wait(`document.querySelector("[aria-selected=true]").textContent.startsWith("#other")`)
	p.SendMessage("#")
	p.Wait(`document.querySelector("[aria-selected=true]").textContent.startsWith("main")`)
	expect(t, "the place after a look elsewhere", place(), 300)
}

// latePictures: the chat stays at its end, and a file without a text has no bubble.
func latePictures(t *testing.T, b *backend, p *browser.Tab) {
	b.late = make(chan struct{})
	for _, text := range numbered(1, 20) {
		b.say("", "<p>"+text+"</p>")
	}
	b.set(func() {
		for range 2 {
			b.add(row{Direction: "out", SenderName: "Ada", Files: []file{{Name: "a.png", URL: "/late.png", Image: true}}})
		}
	})
	b.say("", "<p>below</p>")
	p.Visit(b.url + chat)
	p.Wait(countOf(".message", 23))
	close(b.late)
	p.Wait(`[...document.querySelectorAll(".files img")].every(e => e.naturalHeight > 0)`)
	p.WaitLayout()
	expect(t, "is at the end", browser.Eval[bool](p, `(e => e.scrollHeight - e.scrollTop - e.clientHeight < 2)(document.querySelector(".panel"))`), true)
	expect(t, "bubbles without a text", browser.Eval[string](p, `[...document.querySelectorAll(".message:has(img) .body")].map(e => e.textContent + e.checkVisibility()).join()`), "false,false")
}

// databaseRestored: the page has a row that is not there any more.
func databaseRestored(t *testing.T, b *backend, p *browser.Tab) {
	for _, text := range numbered(1, 3) {
		b.say("", "<p>"+text+"</p>")
	}
	p.Visit(b.url + chat)
	p.Wait(countOf(".message", 3))
	b.set(func() { b.rows, b.cuts = b.rows[:1], b.cuts+1 })
	p.Wait(countOf(".message", 1))
	b.say("", "<p>after the restore</p>")
	p.Wait(countOf(".message", 2))
}

const activeTab = `[...document.querySelectorAll("[role=tab]")].filter(e => e.ariaSelected === "true").map(e => e.textContent.split(",")[0]).join()`

func tabStrip(t *testing.T, b *backend, p *browser.Tab) {
	b.say("", "<p>in main</p>")
	b.say("#a", "<p>in a</p>")
	b.say("#b#c", "<p>in b, c</p>")
	p.Visit(b.url + chat)
	p.Wait(countOf("[role=tab]", 3))
	expect(t, "names", browser.Eval[[]string](p, `[...document.querySelectorAll("[role=tab]")].map(e => e.textContent)`), []string{"main", "#b#c", "#a"})
	p.Do(chromedp.Focus(chromedp.CSS("[role=tab]")))
	for _, step := range []struct{ key, want string }{
		{kb.ArrowRight, "#b#c"}, {kb.ArrowRight, "#a"}, {kb.ArrowRight, "main"}, {kb.ArrowLeft, "#a"},
		{kb.Home, "main"}, {kb.End, "#a"}, {kb.ArrowLeft, "#b#c"},
	} {
		p.TypeKeys(step.key)
		expect(t, "the open tab", browser.Eval[string](p, activeTab), step.want)
		expect(t, "has the focus", browser.Eval[string](p, `document.activeElement.textContent`), step.want)
		expect(t, "is the one stop for the Tab key", browser.Eval[int](p, `document.querySelectorAll("[role=tab][tabindex='0']").length`), 1)
	}
	p.Wait(countOf(".panel:not([hidden]) .message", 1))
	expect(t, "its panel", p.MessageBodies(".message"), []string{"in b, c"})
	expect(t, "panels in sight", browser.Eval[int](p, `document.querySelectorAll(".panel:not([hidden])").length`), 1)
	p.Do(chromedp.Reload())
	p.Wait(activeTab + ` === "#b#c"`)
	browser.Eval[string](p, `location.hash = "#a"`)
	p.Wait(activeTab + ` === "#a"`)
	browser.Eval[string](p, `location.hash = "#%zz"`)
	p.Wait(activeTab + ` === "main"`)
}

func bareTopic(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.SendMessage("#deploy")
	p.Wait(activeTab + ` === "#deploy"`)
	p.SendMessage("ship it")
	p.Wait(countOf(".log .message.in", 1))
	p.SendMessage("#")
	p.Wait(activeTab + ` === "main"`)
	p.SendMessage("#deploy")
	p.Wait(activeTab + ` === "#deploy"`)
	p.SendMessage("#1. is plain text")
	p.Wait(countOf(".log .message.in", 2))
	expect(t, "posts", get(b, func() (sent []string) {
		for _, post := range b.posts {
			sent = append(sent, post.Topic+"|"+post.Text)
		}
		return sent
	}), []string{"#deploy|ship it", "#deploy|#1. is plain text"})

	p.Click("#open-topic")
	p.TypeKeys("Any Name: très long")
	p.PressEnter()
	p.Wait(activeTab + ` === "Any Name: très long" && location.hash === "#any-name-tres-long"`)
	expect(t, "stored as", get(b, func() rows.WebTopic { return b.edited["#any-name-tres-long"] }), rows.WebTopic{Topic: "#any-name-tres-long", Title: "Any Name: très long"})
	p.Click("#edit-topic")
	p.Click("#open-topic")
	expect(t, "the other form", browser.Eval[bool](p, `document.getElementById("topic-form").hidden`), true)
	p.TypeKeys("night-run")
	p.PressEnter()
	p.Wait(activeTab + ` === "#night-run"`)
	expect(t, "the form", browser.Eval[bool](p, `document.getElementById("new-topic").hidden`), true)
}

func drafts(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.SendMessage("#other")
	p.TypeKeys("half a thou")
	browser.Eval[string](p, `location.hash = ""`)
	p.Wait(activeTab + ` === "main"`)
	value := `document.getElementById("text").value`
	expect(t, "in main", browser.Eval[string](p, value), "")
	p.Do(chromedp.Focus(chromedp.ID("text")))
	p.TypeKeys("first")
	p.PressEnter(kb.ModifierShift)
	p.TypeKeys("second")
	expect(t, "two lines", browser.Eval[string](p, value), "first\nsecond")
	p.Do(chromedp.Reload())
	p.Wait(value + ` === "first\nsecond"`)
	browser.Eval[string](p, `location.hash = "#other"`)
	p.Wait(value + ` === "half a thou"`)

	// While an input method composes, Enter belongs to it.
	for _, composing := range []string{"isComposing: true", "keyCode: 229"} {
		browser.Eval[bool](p, `document.getElementById("text").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", `+composing+`, bubbles: true, cancelable: true}))`)
		expect(t, "what is composed, with "+composing, browser.Eval[string](p, value), "half a thou")
	}
}

func typing(t *testing.T, b *backend, p *browser.Tab) {
	p.Prepare(`const set = setTimeout; setTimeout = (call, ms) => set(call, ms === 60_000 && window.minutePasses ? 50 : ms)`)
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.set(func() { b.typing = []string{"", "#deploy"} })
	p.Wait(`document.querySelector(".panel:not([hidden]) .typing").textContent === "Ada is working…"`)
	p.Wait(`[...document.querySelectorAll("[role=tab].working")].map(e => e.textContent).join() === "main, an agent is working,#deploy, an agent is working"`)
	b.set(func() { b.typing = []string{"#deploy"} })
	p.Wait(`document.querySelector(".panel:not([hidden]) .typing").textContent === ""`)
	expect(t, "working tabs", browser.Eval[int](p, `document.querySelectorAll("[role=tab].working").length`), 1)
	browser.Eval[bool](p, `window.minutePasses = true`)
	b.set(func() { b.typing = []string{""} })
	p.Wait(`document.querySelector(".panel:not([hidden]) .typing").textContent === "Ada is working. No sign of it or its model for over a minute…"`)
	b.set(func() { b.typing, b.waits = nil, map[string]rows.WebWait{"": {For: msg.WaitsRetry, Until: 5_000}} })
	p.Wait(`/^The agent failed. Next attempt at .*5/.test(document.querySelector(".panel:not([hidden]) .typing").textContent)`)
	expect(t, "the button", browser.Eval[bool](p, `document.querySelector(".stop").hidden`), false)
	b.set(func() { b.typing = []string{""} })
	p.Wait(countOf("[role=tab].working", 1))
	b.set(func() { b.down = true }) // the page cannot know now
	p.Wait(countOf("[role=tab].working", 0))
}

func unread(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.say("#deploy", "<p>done</p>")
	b.say("#deploy", "<p>really</p>")
	p.Wait(`document.title === "(2) Engineering – arizuko"`)
	p.Wait(`document.querySelector("[role=tab].unread").textContent === "#deploy, 2 unread"`)
	expect(t, "the open tab", browser.Eval[string](p, activeTab), "main")
	p.Click("[role=tab].unread")
	p.Wait(countOf("[role=tab].unread", 0))
	expect(t, "title", browser.Eval[string](p, `document.title`), "Engineering – arizuko")
	b.say("#deploy", "<p>seen at once</p>")
	p.Wait(countOf(".panel:not([hidden]) .message", 3))
	expect(t, "title", browser.Eval[string](p, `document.title`), "Engineering – arizuko")
}

const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script></div>&amp; ` + "\u202e\u2066 '\"`${x}` \u0000"

func hostileText(t *testing.T, b *backend, p *browser.Tab) {
	b.set(func() {
		b.add(row{Direction: "in", Topic: "", Sender: "web:operator", SenderName: hostile, Content: hostile})
		b.add(row{Direction: "out", Topic: "", Sender: hostile, SenderName: hostile, HTML: "<p>" + strings.Repeat("w", 3000) + "</p>" +
			"<pre><code>" + strings.Repeat("x ", 2000) + "</code></pre><table><tr><td>" + strings.Repeat("y&nbsp;", 500) + "</td></tr></table>"})
	})
	p.Resize(375, 800)
	p.Visit(b.url + chat)
	p.Wait(countOf(".message", 2))
	expect(t, "plain text stays plain", p.MessageBodies(".in")[0], hostile)
	expect(t, "so does a name", browser.Eval[string](p, `document.querySelector(".out .sender").textContent`), hostile)
	p.CheckFits()
	p.SendMessage(hostile[:len(hostile)-1])
	p.Wait(countOf(".log .message.in", 2))
	p.CheckFits()
	expect(t, "scripts that ran", browser.Eval[bool](p, `"hit" in window`), false)
	expect(t, "wide parts that scroll by keyboard", browser.Eval[int](p, `document.querySelectorAll(".out pre[tabindex='0'], .out .scroll[tabindex='0'] table").length`), 2)
}

func manyTabs(t *testing.T, b *backend, p *browser.Tab) {
	for i := range 30 {
		b.say(fmt.Sprintf("#topic-%d", i), "<p>x</p>")
	}
	p.Resize(375, 800)
	p.Visit(b.url + chat + "#topic-0")
	p.Wait(countOf("[role=tab]", 31))
	browser.Eval[float64](p, `document.documentElement.scrollLeft = 99`)
	expect(t, "sideways", browser.Eval[float64](p, `document.documentElement.scrollLeft + document.body.scrollLeft`), 0)
	p.Do(chromedp.Focus(chromedp.CSS("[role=tab][tabindex='0']")))
	p.TypeKeys(kb.End)
	p.Wait(`(r => r.left >= 0 && r.right <= 375)(document.querySelector("[aria-selected=true]").getBoundingClientRect())`)
	p.CheckFits()
}

// noticeOfGated is a message, not what a form of the dashboard has done, which has a box in the color of success.
func noticeOfGated(t *testing.T, b *backend, p *browser.Tab) {
	b.set(func() { b.add(row{Direction: "out", Source: "notice", Content: "Sorry", HTML: "<p>Sorry</p>"}) })
	p.Visit(b.url + chat)
	p.Wait(countOf(".message.notice", 1))
	expect(t, "the box around it", browser.Eval[string](p, `getComputedStyle(document.querySelector(".message.notice")).borderTopStyle`), "none")
}

// keyboardAlone walks through the page with the Tab key.
func keyboardAlone(t *testing.T, b *backend, p *browser.Tab) {
	b.say("#deploy", "<p>x</p>")
	p.Visit(b.url + chat)
	p.Wait(countOf("[role=tab]", 2))
	// Starts where a click on the background leads.
	browser.Eval[bool](p, `(document.activeElement.blur(), document.body.tabIndex = -1, document.body.focus(), true)`)
	var stops []string
	for range 24 {
		p.TypeKeys(kb.Tab)
		stops = append(stops, browser.Eval[string](p, `(e => e.innerText?.split(",")[0] || e.id || e.className)(document.activeElement)`))
		seen := browser.Eval[bool](p, `(s => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2)(getComputedStyle(document.activeElement))`)
		if last := stops[len(stops)-1]; !seen && last != "text" {
			t.Errorf("the focus on %q can't be seen", last)
		}
		if stops[len(stops)-1] == "text" {
			break
		}
	}
	want := []string{"Skip to the message box", "arizuko", "search", "Menu", "Log out", "pane-filter", "Engineering", "#deploy", "main", "Operations", "acme/new", "Search", "main", "Edit topic"}
	expect(t, "stops", stops[:min(len(stops), len(want))], want)
	if !slices.Contains(stops, "text") {
		t.Errorf("the message box is not reached: %v", stops)
	}
	p.Visit(b.url + chat + "#deploy")
	browser.Eval[bool](p, `(document.querySelector(".skip").focus(), true)`)
	p.PressEnter()
	expect(t, "the skip link's goal", browser.Eval[string](p, `document.activeElement.id + location.hash`), "text#deploy")
}

// touch: a phone has no other way to a new line than Enter.
func touch(t *testing.T, b *backend, p *browser.Tab) {
	p.Do(chromedp.EmulateViewport(375, 800, chromedp.EmulateMobile, chromedp.EmulateTouch))
	p.Visit(b.url + chat)
	p.WaitConnected()
	expect(t, "a coarse pointer", browser.Eval[bool](p, `matchMedia("(pointer: coarse)").matches`), true)
	p.SendMessage("one")
	p.TypeKeys("two")
	expect(t, "in the box", browser.Eval[string](p, `document.getElementById("text").value`), "one\ntwo")
	p.Click("#composer .send")
	p.Wait(countOf(".log .message.in", 1))
	expect(t, "sent", p.MessageBodies(".message"), []string{"one\ntwo"})
}

// wordsForTimes: the page words times as the server does.
func wordsForTimes(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	ago := func(milliseconds int64) string {
		const now = 1_800_000_000_000
		script := fmt.Sprintf(`import(document.querySelector("script").src.replace("chat.js", "time.js")).then(m => m.ago(%d, %d))`, now-milliseconds, now)
		return browser.Await[string](p, script)
	}
	const minute, hour, day = 60_000, 3_600_000, 86_400_000
	for passed, want := range map[int64]string{
		-hour: "just now", minute - 1: "just now", minute: "1 min ago", hour - 1: "59 min ago", hour: "1 h ago",
		day - 1: "23 h ago", day: "1 d ago", 7*day - 1: "6 d ago", 7 * day: "2027-01-08",
	} {
		expect(t, fmt.Sprint(passed), ago(passed), want)
	}
}
