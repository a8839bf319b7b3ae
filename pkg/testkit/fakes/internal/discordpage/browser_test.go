package discordpage

import (
	"testing"

	"arizuko/pkg/testkit/fakes/internal/pagetest"
)

// After the conversation the user starts a thread from the message.
func TestPage_InBrowser(t *testing.T) {
	r := start(t)
	general := r.channel("general")
	id := general.ChannelID
	tab := pagetest.Converse(t, pagetest.Conversation{
		URL: r.URL + "/?chat=" + id, Mention: "@Arizuko",
		Type: func() { r.bot("POST", id+"/typing", "") },
		Reply: func(text string) {
			first := general.Messages()[0].ID
			r.bot("POST", id+"/messages", `{"content":"`+text+`","message_reference":{"message_id":"`+first+`"}}`)
		},
		EditReply: func(text string) {
			r.bot("PATCH", id+"/messages/"+general.Messages()[1].ID, `{"content":"`+text+`"}`)
		},
	})
	if m := general.Messages()[0]; m.Content != r.dc.Me().Mention()+" hello there again" {
		t.Errorf("edited to %q", m.Content)
	}
	pagetest.Submit(tab, func() { tab.Click("article.mine .tools a:nth-of-type(3)") }) // thread
	tab.Wait(`document.querySelector("nav[aria-label=Threads] [aria-current]")?.innerText === "#new thread"`)
	tab.TypeKeys("more on it")
	pagetest.Submit(tab, func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine:last-of-type .text")?.innerText === "more on it"`)
	pagetest.CheckLook(tab)
}
