package pages_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"arizuko/pkg/testkit/browser"
)

func copiesAndColours(t *testing.T, b *backend, p *browser.Tab) {
	p.Prepare(`Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: async (text) => { window.copied = text; } } })`)
	b.say("", `<p>Look:</p><pre><code class="language-go">return "&lt;img src=x onerror=alert(1)&gt;" // why
</code></pre><p>Done.</p>`)
	b.say("", `<pre><code class="language-brainfuck">+++</code></pre>`)
	p.Visit(b.url + chat)
	p.Wait(`document.querySelector(".hljs-keyword")?.textContent === "return"`)
	expect(t, "elements that the code made", browser.Eval[int](p, `document.querySelectorAll(".log img, .log script").length`), 0)
	expect(t, "coloured blocks", browser.Eval[int](p, `document.querySelectorAll("code:has(span)").length`), 1)
	p.CheckContrast()
	p.Click(`[aria-label="Copy code 1 of message 1"]`)
	const code = `return "<img src=x onerror=alert(1)>" // why`
	p.Wait(`window.copied === ` + encode(code+"\n"))
	p.Wait(`document.querySelector('.code-box button').textContent === "Copied"`)
	p.Click(`[aria-label="Copy message 1"]`)
	p.Wait(`window.copied.replace(/\n+/g, "|") === ` + encode("Look:|"+code+"|Done."))
	expect(t, "why", browser.Eval[string](p, `document.querySelector("a.act").getAttribute("href")`), "/messages/1")

	// Without a clipboard, as on plain http, the text is selected and copied.
	browser.Eval[bool](p, `(Object.defineProperty(navigator, "clipboard", { value: undefined }), document.execCommand = () => { window.copied = document.activeElement.value; return true; }, true)`)
	p.Click(`[aria-label="Copy code 1 of message 2"]`)
	p.Wait(`window.copied === "+++"`)
}

func searchInChat(t *testing.T, b *backend, p *browser.Tab) {
	for i := range 130 {
		topic := "#old"
		if i > 125 {
			topic = ""
		}
		b.say(topic, fmt.Sprintf("<p>message %03d</p>", i+1))
	}
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.Click("#open-search")
	p.TypeKeys("Message 003")
	p.PressEnter()
	p.Wait(`document.querySelector("#find [role=status]").textContent === "1 message"`)
	expect(t, "marked", browser.Eval[string](p, `[...document.querySelectorAll("#find mark")].map((e) => e.textContent).join()`), "message,003")
	p.CheckContrast()
	p.Click("#find li a")
	p.Wait(activeTab + ` === "#old"`)
	p.Wait(`document.activeElement.dataset.id === "3"`)
	p.Wait(`(({ top, bottom }) => top > 0 && bottom < innerHeight)(document.activeElement.getBoundingClientRect())`)
	p.Do(chromedp.Focus(chromedp.ID("search-text")))
	browser.Eval[bool](p, `(document.getElementById("search-text").value = "nowhere", true)`)
	p.PressEnter()
	p.Wait(`document.querySelector("#find [role=status]").textContent === "No messages found"`)
	p.TypeKeys(kb.Escape)
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.id`), "open-search")
}

// asked stores a message of the operator, its turn and the answer.
func (b *backend) asked(text string, turn int64) {
	b.set(func() {
		b.add(row{Direction: "in", Sender: operator, SenderName: "Operator", Content: text, TurnID: &turn})
		b.add(row{Direction: "out", Sender: "agent:acme/eng", SenderName: "Ada", Source: "agent", HTML: "<p>no</p>", TurnID: &turn})
	})
}

func (b *backend) texts() []string {
	return get(b, func() (texts []string) {
		for _, p := range b.posts {
			texts = append(texts, p.Text)
		}
		return texts
	})
}

func tryAgain(t *testing.T, b *backend, p *browser.Tab) {
	b.asked("first", 6)
	b.asked("second", 7)
	b.deny = http.StatusConflict
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.Wait(countOf(".again", 1))
	expect(t, "is under", browser.Eval[string](p, `document.querySelector(".message:has(.again)").dataset.id`), "3")
	p.Click(".again button")
	p.Wait(`document.querySelector(".again span").textContent === "Not taken back: refused with 409. Edit sends it as a new message."`)
	expect(t, "sent while it was refused", b.posted(), 0)
	b.set(func() { b.deny, b.undoes = 0, true })
	p.Click(".again button")
	p.Wait(countOf(".log .message.in", 3))
	expect(t, "sent", b.texts(), []string{"second"})
	expect(t, "taken back", get(b, func() []int64 { return b.undone }), []int64{7, 7})
	p.Wait(`document.querySelector(".message:has(.again)").dataset.id === "5"`)
	b.set(func() { b.typing = []string{""} })
	p.Wait(countOf(".again", 0))
}

func editAndResend(t *testing.T, b *backend, p *browser.Tab) {
	b.asked("deploi", 7)
	b.undoes = true
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.Wait(countOf(".again", 1))
	p.Do(chromedp.Focus(chromedp.ID("text")))
	const value = `document.getElementById("text").value`
	p.TypeKeys(kb.ArrowUp)
	expect(t, "in the box", browser.Eval[string](p, value), "deploi")
	p.CheckContrast()
	p.TypeKeys(kb.Escape)
	expect(t, "cancelled", browser.Eval[string](p, value+` + document.querySelector(".edits").hidden`), "true")
	p.TypeKeys(kb.ArrowUp)
	p.TypeKeys(kb.Backspace + "y")
	p.PressEnter()
	p.Wait(countOf(".log .message.in", 2))
	expect(t, "sent", b.texts(), []string{"deploy"})
	expect(t, "taken back", get(b, func() []int64 { return b.undone }), []int64{7})

	// A refusal of gated comes as an answer; what was typed stays.
	turn := int64(8)
	b.set(func() {
		b.rows[2].TurnID, b.undoes, b.refusal = &turn, false, "<p>too late</p>"
		b.later = nil
	})
	p.Wait(`document.querySelector(".message:has(.again)").dataset.id === "3"`) // until then it moves
	p.Click(".again button:nth-of-type(2)")
	p.PressEnter()
	p.Wait(`document.querySelector(".chosen-status").textContent === "Not taken back: the answer below says why. You can send it as a new message."`)
	expect(t, "kept", browser.Eval[string](p, value), "deploy")
	p.PressEnter()
	p.Wait(countOf(".log .message.in", 3))
}

func chatsBeside(t *testing.T, b *backend, p *browser.Tab) {
	p.Resize(1280, 800)
	b.say("", "<p>one</p>")
	b.say("#deploy", "<p>two</p>")
	p.Visit(b.url + chat)
	p.WaitConnected()
	shown := func() string {
		return browser.Eval[string](p, `[...document.querySelectorAll("#pane-chats li")].filter((e) => e.checkVisibility()).map((e) => e.firstChild.textContent.trim()).join("|")`)
	}
	p.Wait(countOf("#pane-chats ul li", 2))
	expect(t, "chats and topics", shown(), "Engineering|#deploy|main|Operations|acme/new")
	b.set(func() { b.others = 9 })
	p.Wait(countOf("#pane-chats > .unread", 1))
	expect(t, "the newest first", shown(), "Operations, unread|Engineering|#deploy|main|acme/new")
	b.say("#deploy", "<p>three</p>")
	p.Wait(countOf("#pane-chats ul .unread", 1))
	p.CheckContrast()
	p.Do(chromedp.Reload())
	p.Wait(countOf("#pane-chats ul .unread", 1))
	p.Wait(countOf("#pane-chats > .unread", 1))
	p.Click("#pane-chats ul .unread a")
	p.Wait(activeTab + ` === "#deploy" && ` + countOf("#pane-chats ul .unread", 0))
	p.Do(chromedp.Focus(chromedp.ID("pane-filter")))
	p.TypeKeys("OPS")
	expect(t, "filtered", shown(), "Operations, unread")
	p.CheckFits()

	// On a phone a button shows the list in place of the conversation.
	p.Resize(375, 800)
	p.Do(chromedp.Reload())
	p.WaitConnected()
	expect(t, "on a phone", shown(), "")
	p.Wait(`document.getElementById("open-pane").ariaLabel === "Chats, unread"`)
	p.Click("#open-pane")
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.id`), "close-pane")
	expect(t, "opened", shown(), "Operations, unread|Engineering|#deploy|main|acme/new")
	p.CheckFits()
	p.CheckContrast()
	p.TypeKeys(kb.Escape)
	expect(t, "closed", shown()+browser.Eval[string](p, `document.activeElement.id`), "open-pane")
	p.Click("#open-pane")
	p.Click("#pane-chats ul li:last-child a")
	p.Wait(activeTab + ` === "main"`)
	expect(t, "once a topic is chosen", shown()+browser.Eval[string](p, `String(document.getElementById("main").inert)`), "false")
}

// topicsAreRenamedAndPutAway: an archived topic is found by the filter, and comes back with its next message.
func topicsAreRenamedAndPutAway(t *testing.T, b *backend, p *browser.Tab) {
	p.Resize(1280, 800)
	b.say("", "<p>one</p>")
	b.say("#deploy", "<p>two</p>")
	p.Visit(b.url + chat)
	p.WaitConnected()
	shown := func() string {
		return browser.Eval[string](p, `[...document.querySelectorAll("#tabs [role=tab], #pane-chats ul a")].filter((e) => e.checkVisibility()).map((e) => e.firstChild.textContent).join("|")`)
	}
	p.Wait(countOf("#pane-chats ul li", 2))
	p.Click("#pane-chats ul li:first-child a")
	p.Wait(activeTab + ` === "#deploy"`)
	p.Click("#edit-topic")
	p.TypeKeys("Releases <b>")
	p.CheckFits()
	p.CheckContrast()
	p.PressEnter()
	p.Wait(`document.getElementById("topic-form").hidden`)
	expect(t, "renamed", shown(), "Releases <b>|main|main|Releases <b>")
	p.Click("#edit-topic")
	p.Click("[data-archived=true]")
	p.Wait(activeTab + ` === "main"`)
	expect(t, "archived", shown(), "main|main")
	p.Do(chromedp.Reload())
	p.Wait(`!document.getElementById("archived-topics").hidden`)
	expect(t, "archived after a reload", shown(), "main|main")
	p.Click("#archived-topics")
	p.CheckContrast()
	expect(t, "with the archive", shown(), "Releases <b>|main|main|Releases <b>")
	p.Click("#archived-topics")
	p.Do(chromedp.Focus(chromedp.ID("pane-filter")))
	p.TypeKeys("rele")
	expect(t, "searched for", shown(), "Releases <b>|main")
	p.TypeKeys(kb.Backspace + kb.Backspace + kb.Backspace + kb.Backspace)
	b.say("#deploy", "<p>three</p>")
	p.Wait(countOf("#pane-chats ul .unread", 1))
	expect(t, "back", shown(), "Releases <b>|main|main|Releases <b>")
}

func answeredElsewhere(t *testing.T, b *backend, p *browser.Tab) {
	b.set(func() {
		b.add(row{Direction: "in", Sender: operator, Content: "#deploy ship it", MovedTo: "#deploy"})
		b.add(row{Direction: "in", Sender: operator, Content: "#ideas think"})
	})
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.Wait(countOf(".moved", 1))
	b.set(func() { b.add(row{Direction: "in", Sender: operator, Topic: "#ideas", Content: "think", MovedFrom: 2}) })
	p.Wait(countOf(".moved", 2))
	expect(t, "the links", browser.Eval[string](p, `[...document.querySelectorAll(".moved")].map((e) => e.textContent).join()`), "answered in #deploy,answered in #ideas")
	p.Click("[data-id='2'] .moved")
	p.Wait(activeTab + ` === "#ideas"`)
}

// picturesKeepTheirRoom: nothing moves once they have loaded, and those that are chosen are shown.
func picturesKeepTheirRoom(t *testing.T, b *backend, p *browser.Tab) {
	b.late = make(chan struct{})
	b.set(func() {
		b.add(row{Direction: "out", SenderName: "Ada", Files: []file{{Name: "a.png", URL: "/late.png", Image: true, Width: 200, Height: 250}}})
	})
	p.Visit(b.url + chat)
	p.Wait(countOf(".files img", 1))
	const size = `(({ width, height }) => [width, height].join())(document.querySelector(".files img").getBoundingClientRect())`
	expect(t, "before", browser.Eval[string](p, size), "200,250")
	close(b.late)
	p.Wait(`document.querySelector(".files img").naturalHeight > 0`)
	expect(t, "after", browser.Eval[string](p, size), "200,250")
	p.WaitConnected()
	browser.Await[bool](p, `new Promise((resolve) => {
		const picture = Object.assign(document.createElement("canvas"), { width: 30, height: 60 });
		picture.getContext("2d").fillRect(0, 0, 30, 60);
		picture.toBlob((content) => {
			const chosen = new DataTransfer(), input = document.getElementById("files");
			chosen.items.add(new File([content], "b.png", { type: "image/png" }));
			input.files = chosen.files;
			resolve(input.dispatchEvent(new Event("change")));
		});
	})`)
	p.Wait(countOf(".chosen canvas", 1))
	expect(t, "the middle of the preview", browser.Eval[[]int](p, `[...document.querySelector(".chosen canvas").getContext("2d").getImageData(40, 40, 1, 1).data]`), []int{0, 0, 0, 255})
}
