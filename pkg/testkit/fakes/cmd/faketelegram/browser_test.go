package main

import (
	"fmt"
	"net/url"
	"testing"

	"arizuko/pkg/testkit/browser"
)

// A person with a telephone writes, is answered, reacts, and edits.
func TestPageInABrowser(t *testing.T) {
	r := start(t)
	tab := browser.Start(t).Open(t)
	tab.Resize(390, 800)
	next := func(do func()) {
		tab.Follow(do)
		tab.Wait(`document.activeElement.matches("textarea")`)
	}
	team := r.chat("Team")
	chat, here := fmt.Sprint(team.ID), r.tg.Place(team.ID, 0)
	tab.Visit(r.URL + "/?chat=" + chat)

	tab.Click("#mention")
	tab.TypeKeys("hello there")
	next(func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .text")?.innerText === "@arizuko_bot hello there"`)

	tab.TypeKeys("half a th")
	r.bot("sendChatAction", url.Values{"chat_id": {chat}, "action": {"typing"}})
	tab.Wait(`document.querySelector(".typing")`)
	r.bot("sendMessage", url.Values{"chat_id": {chat}, "text": {"hello yourself"}, "reply_to_message_id": {"1"}})
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello yourself" && !document.querySelector(".typing")`)
	if draft := browser.Eval[string](tab, `document.querySelector("textarea").value`); draft != "half a th" {
		t.Errorf("what was being written became %q", draft)
	}
	r.bot("editMessageText", url.Values{"chat_id": {chat}, "message_id": {"2"}, "text": {"hello, all of you"}})
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello, all of you"`)

	next(func() { tab.Click(`article.bot button[value="🔥"]`) })
	tab.Wait(`document.querySelector("article.bot .reactions")?.innerText.trim() === "🔥"`)
	next(func() { tab.Click("article.mine .tools a:nth-of-type(2)") }) // edit
	tab.Wait(`document.activeElement.value === "@arizuko_bot hello there"`)
	tab.TypeKeys(" again")
	next(func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .about").innerText.includes("edited")`)
	if m := here.Messages()[0]; m.Text != "@arizuko_bot hello there again" {
		t.Errorf("edited to %q", m.Text)
	}
	tab.CheckFits()
	for _, scheme := range []string{"light", "dark"} {
		tab.SetColorScheme(scheme)
		tab.CheckContrast()
	}
}
