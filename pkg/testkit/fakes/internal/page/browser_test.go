package page

import (
	"testing"

	"arizuko/pkg/testkit/browser"
)

// A user with a phone writes, receives a reply while writing on, reacts, edits the message, and presses a button.
func TestPage_InBrowser(t *testing.T) {
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			tab := s.converse()
			s.pressStop(tab)
			if m := s.said(0); m.text != s.mention+" hello there again" {
				t.Errorf("edited to %q", m.text)
			}
			checkLook(tab)
		})
	}
}

func (s *site) converse() *browser.Tab {
	s.t.Helper()
	tab, mention := browser.Start(s.t).Open(s.t), s.offered()
	tab.Resize(390, 800)
	tab.Visit(s.url + "/?chat=" + s.team)

	tab.Click("#mention")
	tab.TypeKeys("hello there")
	submit(tab, func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .text")?.innerText === "` + mention + ` hello there"`)

	tab.TypeKeys("half a th")
	if s.typing != nil {
		s.typing()
		tab.Wait(`document.querySelector(".typing")`)
	}
	s.reply("hello yourself")
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello yourself" && !document.querySelector(".typing")`)
	if draft := browser.Eval[string](tab, `document.querySelector("textarea").value`); draft != "half a th" {
		s.t.Errorf("the unsent text became %q", draft)
	}
	s.edit("hello, all of you")
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello, all of you"`)

	submit(tab, func() { tab.Click(`article.bot button[value="🔥"]`) })
	tab.Wait(`document.querySelector("article.bot .reactions")?.innerText.trim() === "🔥"`)
	submit(tab, func() { tab.Click("article.mine .tools a:nth-of-type(2)") }) // edit
	tab.Wait(`document.activeElement.value === "` + mention + ` hello there"`)
	tab.TypeKeys(" again")
	submit(tab, func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .about").innerText.includes("edited")`)
	return tab
}

// pressStop presses a button below the bot's reply, reads the answer, and sees the button go.
func (s *site) pressStop(tab *browser.Tab) {
	const stop = "article.bot .buttons button"
	const all = `document.querySelectorAll("` + stop + `")`
	s.offer(true)
	tab.Wait(all + `.length === 1 && ` + all + `[0].innerText === "Stop"`)
	checkLook(tab)
	submit(tab, func() { tab.Click(stop) })
	s.answer("Already finished.")
	tab.Wait(`Array.from(document.querySelectorAll("article")).some(a =>
		a.querySelector(".text")?.innerText === "Already finished." && /^only .* sees this$/.test(a.querySelector(".note")?.innerText))`)
	s.offer(false)
	tab.Wait(all + `.length === 0`)
}

// submit calls do, which leads to another page, and waits until that can be written in.
func submit(tab *browser.Tab, do func()) {
	tab.Follow(do)
	tab.Wait(`document.activeElement.matches("textarea")`)
}

// checkLook fails the test if the page scrolls sideways or has text of poor contrast.
func checkLook(tab *browser.Tab) {
	tab.CheckFits()
	for _, scheme := range []string{"light", "dark"} {
		tab.SetColorScheme(scheme)
		tab.CheckContrast()
	}
}
