package telegrampage

import (
	"fmt"
	"net/url"
	"testing"

	"arizuko/pkg/testkit/fakes/telegram"
)

func TestPage_Button_IsPressed(t *testing.T) {
	r := start(t)
	team := r.chat("Team")
	chat, here := fmt.Sprint(team.ID), r.tg.Place(team.ID, 0)
	r.bot("sendMessage", url.Values{"chat_id": {chat}, "text": {"Sure?"}, "reply_markup": {`{"inline_keyboard":[[{"text":"Yes","callback_data":"ask:1:1"}]]}`}})
	_, page := r.Get("/?chat=" + chat)
	r.Shows(page, `<button name="button" value="ask:1:1">Yes</button>`)
	id := fmt.Sprint(here.Messages()[0].ID)
	_, page = r.Post("/press", url.Values{"chat": {chat}, "message": {id}, "button": {"ask:1:1"}})
	r.Hides(page, "only Alice sees this")
	if status, _ := r.Post("/press", url.Values{"chat": {chat}, "message": {id}, "button": {"none"}}); status != 400 {
		t.Errorf("a button that is not there: %d", status)
	}
	r.bot("answerCallbackQuery", url.Values{"callback_query_id": {fmt.Sprintf("4382%012d", 1)}, "text": {"Not you."}, "show_alert": {"true"}})
	_, page = r.Get("/?chat=" + chat)
	r.Shows(page, "only Alice sees this", "Not you.")
	if got := here.Notices(); len(got) != 1 || got[0].Text != "Not you." || got[0].By.FirstName != "Alice" {
		t.Errorf("notices: %+v", got)
	}
	if a, ok := r.tg.PressAnswer("none"); ok || a != (telegram.PressAnswer{}) {
		t.Errorf("the answer to no press: %+v", a)
	}
}
