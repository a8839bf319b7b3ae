package browser_test

import (
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

// filesReachAgent: one of them is larger than other requests may be.
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
	p.Wait(`document.querySelectorAll(".log .in .files a").length === 2 && !Object.keys(localStorage).some((key) => key !== "arizuko.seen")`)
	equal(t, "the file as it comes down", browser.Await[string](p.Tab, `fetch(document.querySelector(".log .in .files a").href).then((answer) => answer.text())`), "one, two")
	for name, size := range map[string]int64{"1-1-notes.txt": 8, "1-2-large.bin": 5 << 20} {
		info, err := os.Stat(filepath.Join(i.Instance.Data, "groups", "main", "inbox", name))
		if err != nil || info.Size() != size {
			t.Errorf("the agent's copy of %s: %v, %v", name, info, err)
		}
	}
	p.Click(".again button") // sends the files, too
	last := `[...document.querySelectorAll(".log .in:not(.unsent)")].at(-1)`
	p.Wait(last + `.dataset.id !== "1" && ` + last + `.querySelectorAll(".files a").length === 2 && ` + last + `.matches(":has(.again):has(+ .agent)")`) // while the agent works there is no button
	equal(t, "the file of the second message", browser.Await[string](p.Tab, `fetch(`+last+`.querySelector(".files a").href).then((answer) => answer.text())`), "one, two")
	p.Click(".again button:nth-of-type(2)")
	p.Wait(`document.querySelectorAll(".chosen li").length === 2`)
	p.Click(".edits button")
	p.Wait(`document.querySelectorAll(".chosen li").length === 0`)
}
