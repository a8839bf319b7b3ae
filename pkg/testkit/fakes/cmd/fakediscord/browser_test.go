package main

import (
	"testing"

	"arizuko/pkg/testkit/browser"
)

// A person with a telephone writes, is answered, reacts, edits, and opens a thread.
func TestPageInABrowser(t *testing.T) {
	r := start(t)
	tab := browser.Start(t).Open(t)
	tab.Resize(390, 800)
	next := func(do func()) {
		tab.Follow(do)
		tab.Wait(`document.activeElement.matches("textarea")`)
	}
	general := r.channel("general")
	id := general.ChannelID
	tab.Visit(r.URL + "/?chat=" + id)

	tab.Click("#mention")
	tab.TypeKeys("hello there")
	next(func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .text")?.innerText === "@Arizuko hello there"`)
	asked := general.Messages()[0].ID

	tab.TypeKeys("half a th")
	r.bot("POST", id+"/typing", "")
	tab.Wait(`document.querySelector(".typing")`)
	r.bot("POST", id+"/messages", `{"content":"hello yourself","message_reference":{"message_id":"`+asked+`"}}`)
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello yourself" && !document.querySelector(".typing")`)
	if draft := browser.Eval[string](tab, `document.querySelector("textarea").value`); draft != "half a th" {
		t.Errorf("what was being written became %q", draft)
	}
	r.bot("PATCH", id+"/messages/"+general.Messages()[1].ID, `{"content":"hello, all of you"}`)
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello, all of you"`)

	next(func() { tab.Click(`article.bot button[value="🔥"]`) })
	tab.Wait(`document.querySelector("article.bot .reactions")?.innerText.trim() === "🔥"`)
	next(func() { tab.Click("article.mine .tools a:nth-of-type(2)") }) // edit
	tab.Wait(`document.activeElement.value === "@Arizuko hello there"`)
	tab.TypeKeys(" again")
	next(func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .about").innerText.includes("edited")`)
	if m := general.Messages()[0]; m.Content != r.dc.Me().Mention()+" hello there again" {
		t.Errorf("edited to %q", m.Content)
	}
	next(func() { tab.Click("article.mine .tools a:nth-of-type(3)") }) // thread
	tab.Wait(`document.querySelector("nav[aria-label=Threads] [aria-current]")?.innerText === "#new thread"`)
	tab.TypeKeys("more on it")
	next(func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine:last-of-type .text")?.innerText === "more on it"`)
	tab.CheckFits()
	for _, scheme := range []string{"light", "dark"} {
		tab.SetColorScheme(scheme)
		tab.CheckContrast()
	}
}
