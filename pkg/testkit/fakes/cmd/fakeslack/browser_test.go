package main

import (
	"net/url"
	"testing"

	"arizuko/pkg/testkit/browser"
	"arizuko/pkg/testkit/fakes/slack"
)

// A person with a telephone writes, is answered in a thread, goes there, reacts, and edits.
func TestPageInABrowser(t *testing.T) {
	r := start(t)
	tab := browser.Start(t).Open(t)
	tab.Resize(390, 800)
	next := func(do func()) {
		tab.Follow(do)
		tab.Wait(`document.activeElement.matches("textarea")`)
	}
	team := r.place(slack.Public)
	chat := team.ChannelID
	tab.Visit(r.URL + "/?chat=" + chat)

	tab.Click("#mention")
	tab.TypeKeys("hello there")
	next(func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .text")?.innerText === "@arizuko hello there"`)
	asked := team.Messages()[0]

	tab.TypeKeys("half a th")
	r.bot("chat.postMessage", url.Values{"channel": {chat}, "text": {"hello yourself"}})
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello yourself"`)
	if draft := browser.Eval[string](tab, `document.querySelector("textarea").value`); draft != "half a th" {
		t.Errorf("what was being written became %q", draft)
	}
	r.bot("chat.update", url.Values{"channel": {chat}, "ts": {team.Messages()[1].TS}, "text": {"hello, all of you"}})
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello, all of you"`)

	next(func() { tab.Click(`article.bot button[value="🔥"]`) })
	tab.Wait(`document.querySelector("article.bot .reactions")?.innerText.trim() === "🔥"`)
	next(func() { tab.Click("article.mine .tools a:nth-of-type(2)") }) // edit
	tab.Wait(`document.activeElement.value === "@arizuko hello there"`)
	tab.TypeKeys(" again")
	next(func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .about").innerText.includes("edited")`)
	if m := team.Messages()[0]; m.Text != r.sl.Me().Mention()+" hello there again" {
		t.Errorf("edited to %q", m.Text)
	}

	r.bot("chat.postMessage", url.Values{"channel": {chat}, "thread_ts": {asked.TS}, "text": {"in the thread"}})
	tab.Wait(`document.querySelector("article.mine .note")?.innerText === "replies in the thread: 1"`)
	next(func() { tab.Click("article.mine .tools a:nth-of-type(3)") }) // thread
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "in the thread"`)
	tab.TypeKeys("thanks")
	next(func() { tab.PressEnter() })
	tab.Wait(`document.querySelectorAll("article.mine").length === 2`)
	if m := team.Messages()[3]; m.ThreadTS != asked.TS || m.Text != "thanks" {
		t.Errorf("said %+v", m)
	}
	tab.CheckFits()
	for _, scheme := range []string{"light", "dark"} {
		tab.SetColorScheme(scheme)
		tab.CheckContrast()
	}
}
