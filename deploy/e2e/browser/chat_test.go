package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/browser"
)

func topicsInParallel(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	for _, topic := range []string{"#a", "#b"} {
		p.tab(topic)
		p.SendMessage("until go in " + topic)
	}
	p.showsWorking("#a #b")
	p.says(".panel:not([hidden]) .typing", "is working")
	p.tab("#c")
	p.SendMessage("quick")
	p.shows("> quick", "< quick")
	p.showsWorking("#a #b")
	equal(t, "the typing indicator where no agent works", p.Text(".panel:not([hidden]) .typing"), "")
	i.letGo("go")
	p.showsWorking("")
	p.tab("#a")
	p.shows("> until go in #a", "< until go in #a")
	p.tab("#b")
	p.shows("> until go in #b", "< until go in #b")
}

// liveAnswer: what the agent says of its work is shown, over a reload, until the answer takes its place.
func liveAnswer(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	p.SendMessage("work stream until go show it")
	p.Wait(`document.querySelectorAll(".progress .plan li").length === 3 && document.querySelector(".progress .tools li")`)
	p.Do(chromedp.Reload())
	p.Wait(`document.querySelectorAll(".progress .plan li").length === 3`)
	p.Wait(`document.querySelector(".progress .body").textContent.includes("work stream")`)
	i.letGo("go")
	p.shows("> work stream until go show it", "< work stream until go show it")
	p.Wait(`!document.querySelector(".progress") && document.querySelector(".stop").hidden`)

	p.tab("#stopped")
	p.SendMessage("work until stopped go on")
	p.Wait(`document.querySelector(".panel:not([hidden]) .progress .plan li")`)
	p.Click(".panel:not([hidden]) .stop")
	p.Wait(`!document.querySelector(".progress")`)
	p.showsWorking("")
	equal(t, "turns", i.Query(`SELECT state FROM turns ORDER BY id`), []string{"done", "cancelled"})
}

// failures: the notice says which message it is about, and the next message that fails alike is marked.
func failures(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	p.SendMessage("error permanent <b>first</b>")
	p.says(".message.out.notice .quote", "error permanent <b>first</b>")
	p.SendMessage("error permanent second")
	p.Wait(`document.querySelectorAll(".message.in")[1]?.querySelector(".reactions").innerText.includes("🤷")`)
	p.Do(chromedp.Reload())
	p.says(".message.out.notice .quote", "error permanent <b>first</b>")
	p.Wait(`document.querySelectorAll(".message.in")[1]?.querySelector(".reactions").innerText.includes("🤷")`)
	equal(t, "notices", i.Query(`SELECT count(*) FROM messages WHERE source = 'notice'`), []string{"1"})
	i.stop() // else it is an error that turns have failed
}

func prefixedTopic(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	p.SendMessage("#deploy ship it")
	p.shows("> #deploy ship it")
	p.Wait(`[...document.querySelectorAll("[role=tab].unread")].some(e => e.textContent === "#deploy, 1 unread")`)
	p.tab("#deploy")
	p.shows("> ship it", "< ship it")
	p.says(".panel:not([hidden]) .out", "topic #deploy")
	p.Do(chromedp.Reload())
	p.WaitConnected()
	p.shows("> ship it", "< ship it")
}

func reloadDuringTurn(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	for _, order := range []string{"until one", "frames 3", "until two frames 3"} {
		p.tab("#" + strings.ReplaceAll(order, " ", "-"))
		p.SendMessage(order + " please")
		p.Wait(`document.querySelector(".panel:not([hidden]) .message.in")`)
		if strings.HasPrefix(order, "until") {
			p.says(".panel:not([hidden]) .typing", "is working")
		}
		p.Do(chromedp.Reload())
		p.WaitConnected()
		if name, ok := strings.CutPrefix(order, "until "); ok {
			p.says(".panel:not([hidden]) .typing", "is working")
			i.letGo(strings.Fields(name)[0])
		}
		lines := []string{"> " + order + " please"}
		if strings.HasSuffix(order, "frames 3") {
			lines = append(lines, "< 1/3 "+order+" please", "< 2/3 "+order+" please", "< 3/3 "+order+" please")
		} else {
			lines = append(lines, "< "+order+" please")
		}
		p.shows(lines...)
	}
	p.showsWorking("")
}

func commandsAreAnswered(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	p.SendMessage("/ping")
	p.has("< pong")
	p.SendMessage("/chatid")
	p.has("< web:main")
	p.SendMessage("/status")
	p.Wait(`[...document.querySelectorAll(".out")].some(e => e.innerText.includes("Group: main") && e.innerText.includes("Healthy: dashd, gated, routd"))`)
	p.SendMessage("/help")
	p.Wait(`[...document.querySelectorAll(".out")].some(e => ["/new", "/stop", "/status"].every(c => e.innerText.includes(c)))`)
	p.SendMessage("slow 600 forget it")
	p.says(".typing", "is working")
	p.SendMessage("/stop")
	p.has("< stopped")
	p.showsWorking("")
	p.SendMessage("/new")
	p.has("< new session")
	p.SendMessage("/new tell me")
	p.has("< tell me")
	p.SendMessage("/etc/passwd is a file")
	p.has("< /etc/passwd is a file")
	p.SendMessage("@nogroup")
	p.has("< @nogroup")
	p.SendMessage("@nogroup hello")
	p.has("< @nogroup hello")
	p.SendMessage("#1. is not a topic")
	p.has("< #1. is not a topic")
	p.SendMessage("@main")
	p.has("< routing → main")
	p.SendMessage("@")
	p.has("< routing reset to default")
	p.SendMessage("/approve ABCD-1234")
	p.Wait(`[...document.querySelectorAll(".out")].some(e => e.innerText.includes("(onbod) is not answering"))`) // only operators get as far as this
	if lines := browser.Eval[[]string](p.Tab, chatLines); slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "< slow") }) {
		t.Errorf("the stopped turn is answered: %q", lines)
	}
}

func twoPagesInSync(t *testing.T, b *browser.Browser) {
	i := start(t)
	p, q := i.logIn(b), i.open(b)
	q.visitChat(i, "main", "")
	p.SendMessage("one")
	for _, each := range []*page{p, q} {
		each.shows("> one", "< one")
	}
	q.SendMessage("two")
	for _, each := range []*page{p, q} {
		each.shows("> one", "< one", "> two", "< two")
	}
	p.tab("#side")
	p.SendMessage("until go three")
	q.showsWorking("#side")
	i.letGo("go")
	q.Wait(`document.title.startsWith("(1)")`)
	q.tab("#side")
	for _, each := range []*page{p, q} {
		each.shows("> until go three", "< until go three")
	}
}

func secondGroup(t *testing.T, b *browser.Browser) {
	i := start(t)
	i.Run("routd", "groups", "add", "acme/eng", "--name", "Engineering")
	p := i.logIn(b)
	p.SendMessage("to main")
	p.shows("> to main", "< to main")
	p.Click(".menu summary")
	p.Click(`.menu nav a[href="/chat/"]`)
	p.says(".chats", "Engineering")
	p.says(".chats", "No messages yet")
	p.Click(`a[href="/chat/acme/eng/"]`)
	p.says("h1", "Engineering")
	p.WaitConnected()
	p.SendMessage("to eng")
	p.shows("> to eng", "< to eng")
	p.Visit(i.url + "/chat/")
	equal(t, "the list", browser.Eval[[]string](p.Tab, `[...document.querySelectorAll(".chats .last")].map(e => e.textContent.replace(/ \(.*/, ""))`),
		[]string{"You said: to eng", "You said: to main"})
	p.Visit(i.url + "/chat/acme")
	p.says("h1", "No such chat")
}

func longMessage(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	const lines = 1024 // of 100 bytes each
	browser.Eval[bool](p.Tab, fmt.Sprintf(`(document.getElementById("text").value = Array.from({length: %d}, (_, n) => String(n).padStart(99, ".")).join("\n"), true)`, lines))
	p.Click("#composer .send")
	last := strings.Repeat(".", 95) + fmt.Sprint(lines-1)
	p.Wait(`document.querySelector(".log .message.in")?.textContent.includes(` + quoted(last) + `)`)
	p.Wait(`document.querySelector(".log .message.out")?.textContent.includes(` + quoted(last) + `)`)
	equal(t, "its length", browser.Eval[int](p.Tab, `document.querySelector(".in .body").textContent.length`), 100*lines-1)
	p.CheckFits()
	p.SendMessage("still there?")
	p.has("< still there?")
}

// filesReachAgent: one of them is larger than what other requests may be.
func filesReachAgent(t *testing.T, b *browser.Browser) {
	i := start(t)
	p := i.logIn(b)
	browser.Eval[bool](p.Tab, `(() => {
		const chosen = new DataTransfer(), input = document.getElementById("files");
		chosen.items.add(new File(["one, two"], "notes.txt", { type: "text/plain" }));
		chosen.items.add(new File([new Uint8Array(5 << 20)], "large.bin"));
		input.files = chosen.files;
		return input.dispatchEvent(new Event("change"));
	})()`)
	p.SendMessage("look")
	p.shows("> look", "< look")
	p.Wait(`document.querySelectorAll(".log .in .files a").length === 2 && !localStorage.length`)
	equal(t, "the file as it comes down", browser.Await[string](p.Tab, `fetch(document.querySelector(".log .in .files a").href).then((answer) => answer.text())`), "one, two")
	for name, size := range map[string]int64{"1-1-notes.txt": 8, "1-2-large.bin": 5 << 20} {
		info, err := os.Stat(filepath.Join(i.Instance.Data, "groups", "main", "inbox", name))
		if err != nil || info.Size() != size {
			t.Errorf("the agent's copy of %s: %v, %v", name, info, err)
		}
	}
}

func historyOnScroll(t *testing.T, b *browser.Browser) {
	i := start(t)
	const total = 300
	program := i.program()
	for n := range total {
		program.post("main", "", fmt.Sprintf("silent %d", n))
	}
	p := i.logIn(b)
	count := `document.querySelectorAll(".message").length`
	equal(t, "at first", browser.Eval[int](p.Tab, count), 50)
	for browser.Eval[bool](p.Tab, `!document.querySelector(".earlier").hidden`) {
		before := browser.Eval[int](p.Tab, `(document.querySelector(".panel").scrollTop = 0, `+count+`)`)
		p.Wait(fmt.Sprintf(`%s > %d && document.querySelector(".log").ariaBusy === "false"`, count, before))
	}
	want := make([]string, total)
	for n := range want {
		want[n] = fmt.Sprintf("silent %d", n)
	}
	equal(t, "in the end", p.MessageBodies(".message"), want)
}
