package pages_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"arizuko/pkg/testkit/browser"
)

func rowBeforeAnswer(t *testing.T, b *backend, p *browser.Tab) {
	hold := make(chan struct{})
	b.hold = hold
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.SendMessage("once")
	p.Wait(countOf(".message.in[data-id='1']", 1))
	expect(t, "while the answer is out", p.MessageBodies(".message"), []string{"once"})
	close(hold)
	p.Wait(nothingKept)
	expect(t, "after the answer", p.MessageBodies(".message"), []string{"once"})
}

func keptWhileDown(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.set(func() { b.down = true })
	p.Wait(isReconnecting)
	for _, text := range []string{"one", "two", "three"} {
		p.SendMessage(text)
	}
	p.Wait(`document.querySelectorAll(".pending").length === 3 && document.querySelector(".pending .about").textContent.includes("kept")`)
	b.set(func() { b.down = false })
	p.Wait(countOf(".log .message.in", 3) + " && !document.querySelector('.pending')")
	p.Wait(isLive)
	expect(t, "in the order they were written", p.MessageBodies(".message"), []string{"one", "two", "three"})
	expect(t, "rows", b.stored(), 3)
}

func keptOverReload(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat + "#deploy")
	p.WaitConnected()
	b.set(func() { b.down = true })
	p.SendMessage("keep me")
	p.Wait(countOf(".pending", 1))
	p.Do(chromedp.Reload())
	p.Wait(countOf(".pending", 1))
	expect(t, "after the reload", p.MessageBodies(".pending"), []string{"keep me"})
	b.set(func() { b.down = false })
	p.Wait(countOf(".log .message.in", 1))
	expect(t, "its topic", get(b, func() string { return b.rows[0].Topic }), "#deploy")
}

func answerLost(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(b.url + chat)
	p.WaitConnected()
	b.set(func() { b.forget = true })
	p.SendMessage("stored, but who knows")
	p.Wait(countOf(".log .message.in", 1))
	b.set(func() { b.forget = false })
	p.Wait(nothingKept)
	expect(t, "shown", p.MessageBodies(".message"), []string{"stored, but who knows"})
	expect(t, "rows", b.stored(), 1)
	if posts := get(b, func() []post { return b.posts }); len(posts) < 2 || posts[0].ClientID != posts[len(posts)-1].ClientID || posts[0].Text != posts[len(posts)-1].Text {
		t.Errorf("want the same post again, got %v", posts)
	}
}

func refused(t *testing.T, b *backend, p *browser.Tab) {
	b.deny = 400
	p.Visit(b.url + chat)
	p.WaitConnected()
	p.SendMessage("bad")
	p.Wait(countOf(".refused", 1))
	expect(t, "the reason", p.Text(".refused .about"), "Not sent: refused with 400")
	b.set(func() { b.deny = 0 })
	p.SendMessage("good")
	p.Wait(countOf(".log .message.in", 1)) // one refusal does not keep the others back
	p.Click(".refused .retry")
	p.Wait(countOf(".log .message.in", 2))

	b.set(func() { b.deny = 413 })
	p.SendMessage("too long")
	p.Wait(countOf(".refused", 1))
	p.Do(chromedp.Reload())
	p.Wait(countOf(".refused", 1))
	p.Click(".refused .discard")
	p.Wait(countOf(".refused", 0) + " && " + nothingKept)
	expect(t, "posts", b.posted(), 4) // a refused one is not tried again by itself
}

// plainHTTP: on http from another machine browsers have neither locks nor crypto.randomUUID.
func plainHTTP(t *testing.T, b *backend, p *browser.Tab) {
	p.Visit(strings.Replace(b.url, "127.0.0.1", "chat.test", 1) + chat)
	p.WaitConnected()
	expect(t, "a secure context", browser.Eval[bool](p, `isSecureContext`), false)
	p.SendMessage("over plain http")
	p.Wait(countOf(".log .message.in", 1))
	expect(t, "shown", p.MessageBodies(".message"), []string{"over plain http"})
}

func twoPages(t *testing.T, b *backend, p, q *browser.Tab) {
	p.Visit(b.url + chat)
	q.Visit(b.url + chat)
	p.WaitConnected()
	q.WaitConnected()
	b.set(func() { b.down = true })
	p.SendMessage("from p")
	q.Wait(countOf(".pending", 1)) // either can send it, so both show it
	q.SendMessage("from q")
	p.Wait(countOf(".pending", 2))
	b.set(func() { b.down = false })
	for _, page := range []*browser.Tab{p, q} {
		page.Wait(countOf(".log .message.in", 2) + ` && !document.querySelector(".pending")`)
		expect(t, "shown", page.MessageBodies(".message"), []string{"from p", "from q"})
	}
	expect(t, "rows", b.stored(), 2)
}
