package discordpage

import (
	"strings"
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
	edit := func(components string) func() {
		return func() {
			r.bot("PATCH", id+"/messages/"+general.Messages()[1].ID, `{"components":`+components+`}`)
		}
	}
	pagetest.Press(tab, pagetest.Button{
		Offer: edit(`[{"type":1,"components":[{"type":2,"style":2,"label":"Stop","custom_id":"stop:7"}]}]`), Take: edit("[]"),
		Answer: func(text string) {
			all := r.dc.Interactions()
			if len(all) != 1 {
				t.Fatalf("%d presses", len(all))
			}
			status, answer, _ := r.Do("POST", "/api/v9/interactions/"+all[0].ID+"/"+all[0].Token+"/callback",
				strings.NewReader(`{"type":4,"data":{"content":"`+text+`","flags":64}}`), "Content-Type", "application/json")
			if status/100 != 2 {
				t.Errorf("the answer: %d %s", status, answer)
			}
		},
	})
	pagetest.Submit(tab, func() { tab.Click("article.mine .tools a:nth-of-type(3)") }) // thread
	tab.Wait(`document.querySelector("nav[aria-label=Threads] [aria-current]")?.innerText === "#new thread"`)
	tab.TypeKeys("more on it")
	pagetest.Submit(tab, func() { tab.PressEnter() })
	tab.Wait(`document.querySelector("article.mine:last-of-type .text")?.innerText === "more on it"`)
	pagetest.CheckLook(tab)
}
