package browser_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/browser"
)

func firstAnswer(t *testing.T, b *browser.Browser) {
	i := start(t)
	link, err := url.Parse(i.link)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the path and target of the link", link.Path+" "+link.Query().Get("next"), "/login /chat/main")
	p := i.logIn(b)
	equal(t, "the address, without the token", browser.Eval[string](p.Tab, `location.href`), i.url+"/chat/main")
	equal(t, "the cookie, hidden from scripts", browser.Eval[string](p.Tab, `document.cookie`), "")
	p.says(".welcome", "Write to arizuko")
	p.says(".welcome", "This is the demo agent")
	p.SendMessage("Hello there")
	p.shows("> Hello there", "< Hello there")
	p.says(".message.out .body", "(topic - · place - · surface web · turn 1)")
	p.showsWorking("")
}

const password = "correct horse battery"

func passwordLogsIn(t *testing.T, b *browser.Browser) {
	i := start(t, "DASH_PASSWORD="+password)
	equal(t, "the link", i.link, i.url+"/login?next=/chat/main")
	p := i.open(b)
	p.Visit(i.link)
	enter := func(text string) {
		t.Helper()
		p.Do(chromedp.Focus(chromedp.ID("password")))
		p.TypeKeys(text)
		p.PressEnter()
	}
	enter("guess")
	p.says("[role=alert]", "That is not the password.")
	equal(t, "the password box after a wrong password", browser.Eval[string](p.Tab, `document.getElementById("password").value`), "")
	enter(password)
	p.WaitConnected()
	equal(t, "the address", browser.Eval[string](p.Tab, `location.pathname`), "/chat/main")
	p.SendMessage("let me in")
	p.shows("> let me in", "< let me in")

	p.Click("header form button")
	p.Wait(`document.getElementById("password")`)
	for _, path := range []string{"/chat/main", "/chat/", "/", "/status"} {
		p.Visit(i.url + path)
		p.Wait(`document.getElementById("password")`)
		equal(t, "the redirect of "+path, browser.Eval[string](p.Tab, `location.pathname + location.search`), "/login?next="+url.QueryEscape(path))
	}
	browser.Eval[bool](p.Tab, `(history.back(), true)`)
	p.Wait(`document.getElementById("password")`) // no page comes back from the cache
}

// A user who logs out in another tab sees that in this one, and keeps the written text.
func loginEnds(t *testing.T, b *browser.Browser) {
	i := start(t)
	p, other := i.logIn(b), i.open(b)
	other.visitChat(i, "main", "")
	other.Click("header form button")
	other.says("main", "Log in with a link")
	p.SendMessage("kept")
	p.says("#connection", "Your login has ended.")
	equal(t, "pending", p.MessageBodies(".pending"), []string{"kept"})
	other.Visit(strings.TrimSpace(i.Run("dashd", "login")))
	other.says("h1", "Web chat")
	p.Do(chromedp.Reload())
	p.shows("> kept", "< kept")
}
