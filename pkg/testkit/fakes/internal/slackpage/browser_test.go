package slackpage

import (
	"net/url"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/pagetest"
	"arizuko/pkg/testkit/fakes/slack"
)

// After the conversation the bot replies in a thread, and the user writes there.
func TestPage_InBrowser(t *testing.T) {
	r := start(t)
	team := r.place(slack.Public)
	chat := team.ChannelID
	tab := pagetest.Converse(t, pagetest.Conversation{
		URL: r.URL + "/?chat=" + chat, Mention: "@arizuko",
		Reply: func(text string) { r.bot("chat.postMessage", url.Values{"channel": {chat}, "text": {text}}) },
		EditReply: func(text string) {
			r.bot("chat.update", url.Values{"channel": {chat}, "ts": {team.Messages()[1].TS}, "text": {text}})
		},
	})
	asked := team.Messages()[0]
	if asked.Text != r.sl.Me().Mention()+" hello there again" {
		t.Errorf("edited to %q", asked.Text)
	}

	edit := func(blocks string) func() {
		return func() {
			r.bot("chat.update", url.Values{"channel": {chat}, "ts": {team.Messages()[1].TS}, "text": {"hello, all of you"}, "blocks": {blocks}})
		}
	}
	pagetest.Press(tab, pagetest.Button{
		Offer: edit(`[{"type":"section","text":{"type":"mrkdwn","text":"hello, all of you"}},
			{"type":"actions","elements":[{"type":"button","action_id":"stop:7","value":"stop:7","text":{"type":"plain_text","text":"Stop"}}]}]`),
		Take: edit("[]"),
		Answer: func(text string) {
			r.bot("chat.postEphemeral", url.Values{"channel": {chat}, "user": {asked.User}, "text": {text}})
		},
	})

	r.bot("chat.postMessage", url.Values{"channel": {chat}, "thread_ts": {asked.TS}, "text": {"in the thread"}})
	tab.Wait(`document.querySelector("article.mine .note")?.innerText === "replies in the thread: 1"`)
	pagetest.Submit(tab, func() { tab.Click("article.mine .tools a:nth-of-type(3)") }) // thread
	tab.Wait(`document.querySelector("article.bot .text")?.innerText === "in the thread"`)
	tab.TypeKeys("thanks")
	pagetest.Submit(tab, func() { tab.PressEnter() })
	tab.Wait(`document.querySelectorAll("article.mine").length === 2`)
	if m := team.Messages()[3]; m.ThreadTS != asked.TS || m.Text != "thanks" {
		t.Errorf("sent %+v", m)
	}
	pagetest.CheckLook(tab)
}
