package pages_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/browser"
)

// choose picks files in the page, as its dialog does: names with their contents.
func choose(p *browser.Tab, files ...string) {
	browser.Eval[bool](p, choice(files...))
}

// choice is the script of choose.
func choice(files ...string) string {
	return `(() => {
		const chosen = new DataTransfer(), files = ` + encode(files) + `;
		for (let i = 0; i < files.length; i += 2) chosen.items.add(new File([files[i + 1]], files[i], { type: "text/plain" }));
		const input = document.getElementById("files");
		input.files = chosen.files;
		return input.dispatchEvent(new Event("change"));
	})()`
}

// chips are the files above the box.
func chips(p *browser.Tab) []string {
	return browser.Eval[[]string](p, `[...document.querySelectorAll(".chosen li")].map((e) => e.textContent.trim().replace(/\s+/g, " "))`)
}

// nothingKept is a condition: the browser keeps no message that is to be sent.
const nothingKept = `!Object.keys(localStorage).some((key) => key !== "arizuko.seen")`

// noFilesKept waits until the browser keeps no file.
func noFilesKept(p *browser.Tab) { p.Wait(keptFiles(0)) }

// keptFiles is a condition on how many files the browser keeps.
func keptFiles(n int) string {
	return fmt.Sprintf(`(indexedDB.open("arizuko").onsuccess = ({ target }) => {
		target.result.transaction("files").objectStore("files").count().onsuccess = (event) => { window.keptFiles = event.target.result };
		target.result.close();
	}, window.keptFiles === %d)`, n)
}

// postedFiles are the files of the posts, each as name=content.
func postedFiles(b *backend) (all []string) {
	for _, p := range get(b, func() []post { return b.posts }) {
		for _, f := range p.files {
			all = append(all, f.Name+"="+f.content)
		}
	}
	return all
}

func filesSent(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	browser.Eval[bool](p, `(document.getElementById("files").click = () => { window.opened = true }, document.querySelector(".attach").focus(), true)`)
	p.PressEnter()
	p.Wait(`window.opened`)
	choose(p, "a.txt", "one", "b.txt", strings.Repeat("x", 2048), "c.txt", "three")
	expect(t, "chosen", chips(p), []string{"a.txt 3 bytes", "b.txt 2 KiB", "c.txt 5 bytes"})
	expect(t, "what a screen reader says", p.Text(".chosen-spoken"), "Files to send: a.txt, b.txt, c.txt")
	p.Click(`.chosen button[aria-label="Remove b.txt"]`)
	expect(t, "the rest", chips(p), []string{"a.txt 3 bytes", "c.txt 5 bytes"})
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.ariaLabel`), "Remove c.txt")
	p.SendMessage("look")
	p.Wait(countOf(".log .message.in[data-id='1'] .files a", 2))
	expect(t, "chosen once sent", chips(p), []string{})
	expect(t, "arrived", postedFiles(b), []string{"a.txt=one", "c.txt=three"})
	expect(t, "shown", p.Text(".log .files"), "a.txt 3 bytes\nc.txt 5 bytes")
	choose(p, "alone.txt", "x")
	p.Click("#composer .send")
	p.Wait(countOf(".log .message.in", 2))
	expect(t, "without a text", get(b, func() string { return b.rows[1].Content }), "")
	p.Wait(nothingKept + ` && !sessionStorage.length`)
	noFilesKept(p)
}

func filesRefusedByThePage(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	choose(p, "big.bin", strings.Repeat("x", 1<<20+1), "small.txt", "x")
	expect(t, "the problem", p.Text(".chosen-status"), "big.bin has 1 MiB, and a file may have 1 MiB.")
	expect(t, "chosen", chips(p), []string{"small.txt 1 byte"})
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprintf("%d.txt", i), "x")
	}
	choose(p, many...)
	expect(t, "too many", p.Text(".chosen-status"), "A message has at most 10 files.")
	expect(t, "chosen", len(chips(p)), 10)
}

func filesDroppedAndPasted(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	browser.Eval[bool](p, `(() => {
		const data = new DataTransfer();
		data.items.add(new File(["one"], "dropped.txt"));
		const over = new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true });
		document.getElementById("panels").dispatchEvent(over);
		window.hinted = document.body.classList.contains("dropping") && over.defaultPrevented;
		return document.getElementById("panels").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
	})()`)
	expect(t, "a hint", browser.Eval[bool](p, `hinted`), true)
	paste := func(withText bool) {
		browser.Eval[bool](p, fmt.Sprintf(`(() => {
			const data = new DataTransfer();
			data.items.add(new File(["picture"], "image.png", { type: "image/png" }));
			if (%t) data.setData("text/plain", "a table");
			return document.getElementById("text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
		})()`, withText))
	}
	paste(false)
	paste(true) // the text is meant
	expect(t, "chosen", chips(p), []string{"dropped.txt 3 bytes", "image.png 7 bytes"})
	p.Click("#composer .send")
	p.Wait(countOf(".log .message.in", 1))
	expect(t, "arrived", postedFiles(b), []string{"dropped.txt=one", "image.png=picture"})
}

func filesKeptOverReload(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	choose(p, "draft.txt", "not sent yet")
	p.Wait(`sessionStorage.length`)
	p.Wait(keptFiles(1))
	p.Do(chromedp.Reload())
	p.WaitConnected()
	expect(t, "the draft's file", chips(p), []string{"draft.txt 12 bytes"})
	b.set(func() { b.down = true })
	p.SendMessage("with a file")
	choose(p, "second.txt", "2")
	p.SendMessage("second")
	p.SendMessage("third")
	p.Wait(countOf(".pending", 3) + ` && Object.keys(localStorage).filter((key) => key !== "arizuko.seen").length === 3`)
	p.Do(chromedp.Reload())
	p.Wait(countOf(".pending", 3))
	expect(t, "files of the pending one", p.Text(".pending .files"), "draft.txt 12 bytes")
	b.set(func() { b.down = false })
	p.Wait(countOf(".log .message.in", 3) + ` && !document.querySelector(".pending")`)
	expect(t, "in the order they were written", p.MessageBodies(".message"), []string{"with a file", "second", "third"})
	files := postedFiles(b)
	expect(t, "arrived", files[len(files)-2:], []string{"draft.txt=not sent yet", "second.txt=2"})
	noFilesKept(p)
}

// checkLook checks how a state of the page looks on a phone.
func checkLook(p *browser.Tab, name string) {
	for _, scheme := range []string{"light", "dark"} {
		p.SetColorScheme(scheme)
		p.CheckFits()
		p.CheckContrast()
		if *shots != "" {
			p.Screenshot(filepath.Join(*shots, name+"-"+scheme+".png"))
		}
	}
}

func filesCancelled(t *testing.T, b *backend, p *browser.Tab) {
	stall := make(chan struct{})
	b.stall = stall
	p.Resize(375, 800)
	p.Visit(b.url + chat)
	p.WaitConnected()
	choose(p, "slow.bin", strings.Repeat("x", 1<<20))
	p.SendMessage("slow")
	p.Wait(`document.querySelector(".pending progress")?.checkVisibility() && document.querySelector(".pending progress").value > 0`)
	p.Do(chromedp.Focus(chromedp.CSS(".pending .cancel")))
	b.set(func() {
		b.add(row{Direction: "out", Sender: "agent:acme/eng", SenderName: "Ada", HTML: "<p>meanwhile</p>"})
	})
	p.Wait(countOf(".message.out", 1))
	expect(t, "the focus", browser.Eval[string](p, `document.activeElement.className`), "quiet cancel")
	p.Do(chromedp.Focus(chromedp.CSS("#text")))
	p.SendMessage("behind it")
	p.Wait(countOf(".pending", 2))
	expect(t, "the progress is still shown", browser.Eval[bool](p, `document.querySelector(".pending progress").checkVisibility()`), true)
	checkLook(p, "chat-sending")
	p.Click(".pending .cancel")
	p.Wait(countOf(".refused", 1))
	expect(t, "what it says", p.Text(".refused .about"), "Not sent: cancelled")
	checkLook(p, "chat-cancelled")
	p.Wait(countOf(".log .message.in", 1)) // others do not wait for it
	expect(t, "sent", p.MessageBodies(".log .message.in"), []string{"behind it"})
	close(stall)
	b.set(func() { b.stall = nil })
	p.Click(".refused .retry")
	p.Wait(countOf(".log .message.in", 2) + " && " + nothingKept)
	p.Wait(countOf(".refused", 0))
	b.set(func() { b.deny = 413 })
	choose(p, "refused.txt", "x")
	p.SendMessage("refused")
	p.Wait(countOf(".refused", 1))
	expect(t, "the reason", p.Text(".refused .about"), "Not sent: refused with 413")
	p.Click(".refused .discard")
	p.Wait(countOf(".refused", 0) + " && " + nothingKept)
	noFilesKept(p)
}

func filesAnswerLost(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.set(func() { b.forget = true })
	choose(p, "a.txt", "one")
	p.SendMessage("stored, but who knows")
	p.Wait(countOf(".log .message.in", 1))
	b.set(func() { b.forget = false })
	p.Wait(nothingKept)
	expect(t, "shown", p.MessageBodies(".message"), []string{"stored, but who knows"})
	expect(t, "rows", b.stored(), 1)
}

// filesNotKept: some browsers have no IndexedDB in private windows, or no room.
func filesNotKept(t *testing.T, b *backend, p *browser.Tab) {
	p.Prepare(`Object.defineProperty(window, "indexedDB", { get() { throw new Error("not here") } })`)
	p.Visit(b.url + chat)
	p.WaitConnected()
	choose(p, "a.txt", "one")
	p.SendMessage("sent at once")
	p.Wait(countOf(".log .message.in .files a", 1))
	b.set(func() { b.down = true })
	choose(p, "b.txt", "two", "c.txt", "three")
	p.SendMessage("for later")
	p.Wait(countOf(".pending", 1))
	p.Do(chromedp.Reload())
	p.Wait(countOf(".refused", 1))
	expect(t, "what it says", p.Text(".refused .about"), "Not sent: choose b.txt, c.txt again, this browser has not kept them")
	p.Click(".refused .retry")
	p.Wait(countOf(".refused", 0))
	expect(t, "back in the box", browser.Eval[string](p, `document.getElementById("text").value`), "for later")
	choose(p, "d.txt", "four")
	p.Do(chromedp.Reload())
	p.Wait(`document.querySelector(".chosen-status").textContent`)
	expect(t, "a draft", p.Text(".chosen-status"), "Choose d.txt again: this browser has not kept it.")
	expect(t, "chosen", chips(p), []string{})
}

func filesHostileNames(t *testing.T, b *backend, p *browser.Tab) {
	p.Resize(375, 800)
	p.Visit(b.url + chat)
	p.WaitConnected()
	name := `<img src=x onerror="window.hit=1">` + "\u202egpj.exe" + strings.Repeat("n", 100)
	choose(p, name, "x", "a\u0001b\u0000.txt", "y", `..\..\evil`, "z")
	p.CheckFits()
	b.set(func() { b.down = true })
	p.SendMessage("hostile")
	p.Wait(countOf(".pending .files li", 3))
	p.CheckFits()
	b.set(func() { b.down = false })
	p.Wait(countOf(".log .files a", 3))
	p.CheckFits()
	expect(t, "scripts that ran", browser.Eval[bool](p, `"hit" in window`), false)
	expect(t, "names", browser.Eval[[]string](p, `[...document.querySelectorAll(".log .files bdi")].map((e) => e.textContent)`)[1:], []string{"a_b_.txt", `..\..\evil`})
}

func filesTwoPages(t *testing.T, b *backend, p, q *browser.Tab) {
	p.Visit(b.url + chat)
	q.Visit(b.url + chat)
	p.WaitConnected()
	q.WaitConnected()
	b.set(func() { b.down = true })
	choose(p, "p.txt", "from p")
	p.SendMessage("from p")
	q.Wait(countOf(".pending .files li", 1)) // either can send it, so both show it
	choose(q, "q.txt", "from q")
	q.SendMessage("from q")
	p.Wait(countOf(".pending .files li", 2))
	b.set(func() { b.down = false })
	for _, page := range []*browser.Tab{p, q} {
		page.Wait(countOf(".log .message.in", 2) + ` && !document.querySelector(".pending")`)
		expect(t, "shown", page.MessageBodies(".message"), []string{"from p", "from q"})
	}
	expect(t, "rows", b.stored(), 2)
	noFilesKept(p)
}

func firstScreen(t *testing.T, b *backend, p *browser.Tab) {
	b.demo = true
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.Wait(`document.querySelector(".welcome").checkVisibility()`)
	for _, want := range []string{"Write to Ada", "acme/eng", "demo agent", "AGENT_COMMAND", "10 of 1 MiB", "Telegram"} {
		if shown := p.Text(".welcome"); !strings.Contains(shown, want) {
			t.Errorf("%q is not in %q", want, shown)
		}
	}
	p.Click(`.welcome [data-word="/help"]`)
	expect(t, "the box", browser.Eval[string](p, `document.getElementById("text").value + document.activeElement.id`), "/helptext")
	p.Click(`.welcome [data-word="/status"]`)
	expect(t, "the other word", browser.Eval[string](p, `document.getElementById("text").value`), "/status")
	p.Click("#composer .send")
	p.Wait(countOf(".log .message.in", 1))
	expect(t, "after a message", browser.Eval[bool](p, `document.querySelector(".welcome").checkVisibility()`), false)
	p.SendMessage("#deploy")
	p.Wait(`document.querySelector(".panel:not([hidden]) .none")?.checkVisibility()`)
	expect(t, "other tabs", browser.Eval[int](p, `document.querySelectorAll(".panel:not([hidden]) .welcome").length`), 0)
	b.set(func() { b.demo = false })
	p.Visit(b.url + chat)
	p.WaitConnected()
	expect(t, "the demo agent", browser.Eval[int](p, `document.querySelectorAll(".demo").length`), 0)
}
