package telegram_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/testkit/fakes/telegram"
)

func TestSendPhoto_Picture_IsShownOrRefused(t *testing.T) {
	t.Parallel()
	r := start(t, telegram.Options{})
	chat := r.DM(r.User("Alice", "alice")).ChatID
	webp := append([]byte("RIFF\x18\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"), make([]byte, 12)...)
	const failed, wrong = "Bad Request: IMAGE_PROCESS_FAILED", "Bad Request: PHOTO_INVALID_DIMENSIONS"
	for name, tt := range map[string]struct {
		data []byte
		want string // "" for a photo
	}{
		"small":             {picture(1, 1), ""},
		"JPEG":              {jpegPicture(30, 20), ""},
		"GIF":               {gifPicture(30, 20), ""},
		"WebP":              {webp, ""},
		"of maximum sum":    {picture(1000, 9000), ""},
		"above the sum":     {picture(1001, 9000), wrong},
		"of maximum ratio":  {picture(400, 20), ""},
		"above the ratio":   {picture(401, 20), wrong},
		"cut off":           {picture(100, 100)[:60], failed},
		"TIFF":              {[]byte("II*\x00\x08\x00\x00\x00"), failed},
		"BMP":               {append([]byte("BM"), make([]byte, 60)...), failed},
		"HEIC":              {[]byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00heicmif1"), failed},
		"SVG":               {[]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), failed},
		"truncated WebP":    {webp[:20], failed},
		"a PNG header only": {[]byte("\x89PNG\r\n\x1a\n"), failed},
	} {
		a := r.upload("sendPhoto", map[string][]byte{"photo": tt.data}, "chat_id", chat)
		if tt.want != "" {
			r.refused(a, 400, tt.want)
		} else if a.Status != http.StatusOK {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

func TestButtons_InvalidCalls_Refused(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	var m telegram.Message
	r.must(&m, "sendMessage", "chat_id", dm.ChatID, "text", "sure?", "reply_markup", `{"inline_keyboard":[[{"text":"Yes","callback_data":"y"}]]}`)
	query := dm.Press(alice, m.ID, "y")
	r.must(nil, "answerCallbackQuery", "callback_query_id", query, "text", "not you", "show_alert", "true")
	if a, _ := r.PressAnswer(query); a != (telegram.PressAnswer{Text: "not you", Alert: true}) {
		t.Errorf("the user sees %+v", a)
	}
	const old = "Bad Request: query is too old and response timeout expired or query ID is invalid"
	r.refuse(400, old, "answerCallbackQuery", "callback_query_id", query)
	r.refuse(400, old, "answerCallbackQuery", "callback_query_id", "1")
	r.refuse(400, "Bad Request: BUTTON_DATA_INVALID", "sendMessage", "chat_id", dm.ChatID, "text", "x",
		"reply_markup", `{"inline_keyboard":[[{"text":"x","callback_data":"`+strings.Repeat("x", 65)+`"}]]}`)
	r.refuse(400, "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard", "sendMessage", "chat_id", dm.ChatID, "text", "x",
		"reply_markup", `{"inline_keyboard":[[{"text":"x","callback_data":""}]]}`)
	r.refuse(400, "Bad Request: object expected as reply markup", "sendMessage", "chat_id", dm.ChatID, "text", "x", "reply_markup", `[]`)
	const same = "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"
	r.must(nil, "editMessageReplyMarkup", "chat_id", dm.ChatID, "message_id", m.ID)
	if got := dm.Messages()[0]; got.Text != "sure?" || len(got.Buttons()) != 0 || got.EditDate != 0 {
		t.Errorf("%+v", got)
	}
	r.refuse(400, same, "editMessageReplyMarkup", "chat_id", dm.ChatID, "message_id", m.ID)
	r.refuse(400, "Bad Request: message to edit not found", "editMessageReplyMarkup", "chat_id", dm.ChatID, "message_id", m.ID+1)
}

func TestSendMessage_LinkPreviewOptions_AreAnObject(t *testing.T) {
	r := start(t, telegram.Options{})
	dm := r.DM(r.User("Alice", "alice"))
	for _, valid := range []string{"", `{}`, `{"is_disabled":true,"unknown":1}`} {
		r.must(nil, "sendMessage", "chat_id", dm.ChatID, "text", "x", "link_preview_options", valid)
	}
	for _, invalid := range []string{"true", "null", "[]", `{"is_disabled":"true"}`, "{"} {
		r.refuse(400, "Bad Request: object expected as link preview options", "sendMessage", "chat_id", dm.ChatID, "text", "x", "link_preview_options", invalid)
	}
}

func TestGetUpdates_NotTakenForADay_AreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegram.New(telegram.Options{})
		alice := s.User("Alice", "alice")
		s.DM(alice).Say(alice, "old")
		time.Sleep(13 * time.Hour) //nolint:forbidigo // in a bubble
		s.DM(alice).Say(alice, "new")
		time.Sleep(12 * time.Hour) //nolint:forbidigo // in a bubble
		if _, body := direct(s, "getUpdates"); strings.Contains(body, "old") || !strings.Contains(body, "new") {
			t.Errorf("got %s", body)
		}
	})
}

func TestSendPoll_CloseDate_ClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegram.New(telegram.Options{})
		chat := s.DM(s.User("Alice", "alice")).ChatID
		poll := func(closes int64) (int, string) {
			return direct(s, "sendPoll", "chat_id", chat, "question", "q", "options", `["a","b"]`, "close_date", closes)
		}
		now := time.Now().Unix()
		for _, v := range []int64{now + 4, now + 601, now - 9} {
			if code, body := poll(v); code != 400 || !strings.Contains(body, "POLL_OPEN_PERIOD_INVALID") {
				t.Errorf("%d: %d %s", v, code, body)
			}
		}
		if code, body := poll(now + 60); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		time.Sleep(61 * time.Second) //nolint:forbidigo // in a bubble
		if _, body := direct(s, "getUpdates"); !strings.Contains(body, `"is_closed":true`) {
			t.Errorf("got %s", body)
		}
	})
}

func TestOptions_SelfHostedServer(t *testing.T) {
	r := start(t, telegram.Options{Lacks: []string{"setMessageReaction"}, Local: true})
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	r.refuse(404, "Not Found: method not found", "setMessageReaction", "chat_id", dm.ChatID)
	sent := dm.Attach(alice, telegram.Attachment{Kind: "document", Name: "a.bin", Data: make([]byte, 20<<20+1)}, "")
	var f struct {
		Path string `json:"file_path"`
	}
	r.must(&f, "getFile", "file_id", sent.Document.FileID)
	folder := "/var/lib/telegram-bot-api/" + r.Token() + "/"
	path, ok := strings.CutPrefix(f.Path, folder)
	if !ok {
		t.Fatalf("the path is %q", f.Path)
	}
	if a := r.request(http.MethodGet, "/file/bot"+r.Token()+"/"+path, nil, ""); len(a.body) != 20<<20+1 {
		t.Errorf("got %d bytes", len(a.body))
	}
}

func TestDirectMessages_EachSubscriber_HasATopic(t *testing.T) {
	t.Parallel()
	r := start(t, telegram.Options{})
	alice, bob := r.User("Alice", "alice"), r.User("Bob", "bob")
	chat := r.DirectMessages("News")
	at := chat.Subscriber(alice)
	ofBob := chat.Subscriber(bob).Say(bob, "my PIN is 1234")
	if _, err := at.Post(bob, telegram.Draft{Text: "hi"}); err == nil {
		t.Error("one subscriber writes to another's topic")
	}
	if _, err := at.Post(alice, telegram.Draft{Text: "hi", ReplyTo: ofBob.ID}); err == nil {
		t.Error("one subscriber answers another's message")
	}
	for want, args := range map[string][]any{
		"channel direct messages topic must be specified": {"sendMessage", "chat_id", chat.ChatID, "text", "x"},
		"topic not found": {"sendMessage", "chat_id", chat.ChatID, "text", "x", "direct_messages_topic_id", 5},
		"chat actions can't be sent to channel direct messages chats": {"sendChatAction", "chat_id", chat.ChatID, "action", "typing"},
		"polls can't be sent to channel direct messages chats":        {"sendPoll", "chat_id", chat.ChatID, "question", "?", "options", `["a","b"]`},
		"the chat isn't a channel direct messages chat":               {"sendMessage", "chat_id", r.DM(alice).ChatID, "text", "x", "direct_messages_topic_id", 5},
	} {
		r.refused(r.call(args[0].(string), args[1:]...), 400, "Bad Request: "+want)
	}
}
