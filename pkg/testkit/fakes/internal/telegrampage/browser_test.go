package telegrampage

import (
	"fmt"
	"net/url"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/pagetest"
)

func TestPage_InBrowser(t *testing.T) {
	r := start(t)
	team := r.chat("Team")
	chat := fmt.Sprint(team.ID)
	tab := pagetest.Converse(t, pagetest.Conversation{
		URL: r.URL + "/?chat=" + chat, Mention: "@arizuko_bot",
		Type: func() { r.bot("sendChatAction", url.Values{"chat_id": {chat}, "action": {"typing"}}) },
		Reply: func(text string) {
			r.bot("sendMessage", url.Values{"chat_id": {chat}, "text": {text}, "reply_to_message_id": {"1"}})
		},
		EditReply: func(text string) {
			r.bot("editMessageText", url.Values{"chat_id": {chat}, "message_id": {"2"}, "text": {text}})
		},
	})
	if m := r.tg.Place(team.ID, 0).Messages()[0]; m.Text != "@arizuko_bot hello there again" {
		t.Errorf("edited to %q", m.Text)
	}
	edit := func(markup string) func() {
		return func() {
			r.bot("editMessageText", url.Values{"chat_id": {chat}, "message_id": {"2"}, "text": {"hello, all of you"}, "reply_markup": {markup}})
		}
	}
	pagetest.Press(tab, pagetest.Button{
		Offer: edit(`{"inline_keyboard":[[{"text":"Stop","callback_data":"stop:7"}]]}`), Take: edit(""),
		Answer: func(text string) {
			r.bot("answerCallbackQuery", url.Values{"callback_query_id": {fmt.Sprintf("4382%012d", 1)}, "text": {text}})
		},
	})
	pagetest.CheckLook(tab)
}
