package pagetest

import (
	"testing"

	"arizuko/pkg/testkit/browser"
)

// Conversation is what [Converse] needs of a platform.
type Conversation struct {
	URL       string            // of the page, at an empty chat
	Mention   string            // of the bot, as the page shows it
	Type      func()            // makes the bot type; nil where the page does not show that
	Reply     func(text string) // sends a message of the bot
	EditReply func(text string) // edits that message
}

// Converse is a user with a phone, in a real browser: it writes, receives a reply while it writes
// on, reacts, and edits its message to the mention and "hello there again". It returns the tab.
func Converse(t *testing.T, c Conversation) *browser.Tab {
	t.Helper()
	tab := browser.Start(t).Open(t)
	tab.Resize(390, 800)
	tab.Visit(c.URL)

	tab.Click("#mention")
	tab.TypeKeys("hello there")
	Submit(tab, func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .text")?.innerText === "` + c.Mention + ` hello there"`)

	tab.TypeKeys("half a th")
	if c.Type != nil {
		c.Type()
		tab.Wait(`document.querySelector(".typing")`)
	}
	c.Reply("hello yourself")
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello yourself" && !document.querySelector(".typing")`)
	if draft := browser.Eval[string](tab, `document.querySelector("textarea").value`); draft != "half a th" {
		t.Errorf("the unsent text became %q", draft)
	}
	c.EditReply("hello, all of you")
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "hello, all of you"`)

	Submit(tab, func() { tab.Click(`article.bot button[value="🔥"]`) })
	tab.Wait(`document.querySelector("article.bot .reactions")?.innerText.trim() === "🔥"`)
	Submit(tab, func() { tab.Click("article.mine .tools a:nth-of-type(2)") }) // edit
	tab.Wait(`document.activeElement.value === "` + c.Mention + ` hello there"`)
	tab.TypeKeys(" again")
	Submit(tab, func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine .about").innerText.includes("edited")`)
	return tab
}

// Submit calls do, which leads to another page, and waits until that can be written in.
func Submit(tab *browser.Tab, do func()) {
	tab.Follow(do)
	tab.Wait(`document.activeElement.matches("textarea")`)
}

// CheckLook fails the test if the page scrolls sideways or has text of poor contrast.
func CheckLook(tab *browser.Tab) {
	tab.CheckFits()
	for _, scheme := range []string{"light", "dark"} {
		tab.SetColorScheme(scheme)
		tab.CheckContrast()
	}
}

// Button is what [Press] needs of a platform.
type Button struct {
	Offer  func()            // puts the button Stop below the bot's message
	Answer func(text string) // answers the press with what its user alone reads
	Take   func()            // takes the button away
}

// Press is the user after [Converse], who presses a button below the bot's message, reads the answer, and sees the
// button go.
func Press(tab *browser.Tab, b Button) {
	const buttons, stop = `document.querySelectorAll("article.bot .buttons button")`, "article.bot .buttons button"
	b.Offer()
	tab.Wait(buttons + `.length === 1 && ` + buttons + `[0].innerText === "Stop"`)
	CheckLook(tab)
	Submit(tab, func() { tab.Click(stop) })
	b.Answer("Already finished.")
	tab.Wait(`Array.from(document.querySelectorAll("article")).some(a =>
		a.querySelector(".text")?.innerText === "Already finished." && /^only .* sees this$/.test(a.querySelector(".note")?.innerText))`)
	b.Take()
	tab.Wait(buttons + `.length === 0`)
}
