package telegram_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/telegram"
)

func TestMethods_WrongTokenOrPath_Refused(t *testing.T) {
	r := start(t, telegram.Options{})
	tests := []struct {
		path   string
		status int
		reason string
	}{
		{"/bot" + r.Token() + "/GETME", 200, ""},
		{"/bot5000000001:wrong/getMe", 401, "Unauthorized"},
		{"/bot123/getMe", 404, "Not Found"},
		{"/bot/getMe", 404, "Not Found"},
		{"/", 404, "Not Found"},
		{"/bot" + r.Token(), 404, "Not Found"},
		{"/bot" + r.Token() + "/noSuchMethod", 404, "Not Found: method not found"},
		{"/file/bot5000000001:wrong/photos/file_1.jpg", 401, "Unauthorized"},
		{"/file/bot" + r.Token() + "/photos/file_1.jpg", 404, "Not Found"},
	}
	for _, tt := range tests {
		a := r.request(http.MethodGet, tt.path, nil, "")
		if a.Status != tt.status || a.Description != tt.reason {
			t.Errorf("%s: %d %q, want %d %q", tt.path, a.Status, a.Description, tt.status, tt.reason)
		}
	}
}

func TestMethods_EachParameterForm_Accepted(t *testing.T) {
	r := start(t, telegram.Options{})
	chat := r.DM(r.User("Alice", "alice")).ChatID
	path := "/bot" + r.Token() + "/sendMessage"
	bold := `[{"type":"bold","offset":0,"length":2}]`
	sends := map[string]func() answer{
		"query": func() answer {
			return r.request(http.MethodGet, path+"?"+form("chat_id", chat, "text", "hi", "entities", bold).Encode(), nil, "")
		},
		"form": func() answer { return r.call("sendMessage", "chat_id", chat, "text", "hi", "entities", bold) },
		"JSON": func() answer {
			body := fmt.Sprintf(`{"chat_id":%d,"text":"hi","entities":%s,"reply_markup":null}`, chat, bold)
			return r.request(http.MethodPost, path, strings.NewReader(body), "application/json; charset=utf-8")
		},
		"multipart": func() answer { return r.upload("sendMessage", nil, "chat_id", chat, "text", "hi", "entities", bold) },
	}
	for name, send := range sends {
		t.Run(name, func(t *testing.T) {
			var m telegram.Message
			r.accepted(send(), &m)
			if m.Text != "hi" || len(m.Entities) != 1 || m.Entities[0].Type != "bold" || m.Chat.ID != chat {
				t.Errorf("got %+v", m)
			}
		})
	}
	var m telegram.Message
	r.accepted(r.request(http.MethodPost, path, strings.NewReader(fmt.Sprintf("chat_id=%d&text=so;+far", chat)), "application/x-www-form-urlencoded"), &m)
	if m.Text != "so; far" {
		t.Errorf("got %q", m.Text)
	}
	r.refused(r.request(http.MethodPost, path, strings.NewReader("text=%"), "application/x-www-form-urlencoded"), 400, "Bad Request: can't parse parameters")
	r.refused(r.request(http.MethodPost, path, strings.NewReader("[1]"), "application/json"), 400, "Bad Request: can't parse request body as JSON object")
	r.refused(r.request(http.MethodPost, path, strings.NewReader("--x\r\nrubbish"), "multipart/form-data; boundary=x"), 400, "Bad Request: can't parse multipart form data")
}

func TestSendMessage_InvalidText(t *testing.T) {
	r := start(t, telegram.Options{})
	chat := r.DM(r.User("Alice", "alice")).ChatID
	tests := []struct{ name, text, entities, want string }{
		{"empty", "", "", "message text is empty"},
		{"blank", " \n", "", "text must be non-empty"},
		{"no UTF-8", "\xff", "", "strings must be encoded in UTF-8"},
		{"of maximum length", strings.Repeat("😀", 2048), "", ""},
		{"too long", strings.Repeat("😀", 2048) + "x", "", "message is too long"},
		{"ends after the text", "hello", `[{"type":"bold","offset":0,"length":6}]`, "entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 6"},
		{"begins after the text", "hello", `[{"type":"bold","offset":9,"length":1}]`, "entity begins after the end of the text at UTF-16 offset 9"},
		{"negative", "hello", `[{"type":"bold","offset":-1,"length":1}]`, "entity begins after the end of the text at UTF-16 offset -1"},
		{"overflow", "hello", `[{"type":"bold","offset":1,"length":9223372036854775807}]`, "entity beginning at UTF-16 offset 1 ends in a middle of a UTF-16 symbol at byte offset 0"},
		{"empty entity", "hello", `[{"type":"bold","offset":99,"length":0}]`, ""},
		{"ends in a character", "😀", `[{"type":"bold","offset":0,"length":1}]`, "entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 0"},
		{"begins in a character", "a😀", `[{"type":"bold","offset":2,"length":1}]`, "entity begins in a middle of a UTF-16 symbol at byte offset 1"},
		{"crossing", "hello world.", `[{"type":"bold","offset":0,"length":6},{"type":"italic","offset":3,"length":9}]`, "entity beginning at UTF-16 offset 3 ends after the end of the text at UTF-16 offset 12"},
		{"nested", "hello", `[{"type":"italic","offset":1,"length":2},{"type":"bold","offset":0,"length":5},{"type":"code","offset":3,"length":2}]`, ""},
		{"unknown type", "hello", `[{"type":"sparkle","offset":0,"length":1}]`, "can't parse MessageEntity: Unsupported type specified"},
		{"link without address", "hello", `[{"type":"text_link","offset":0,"length":1}]`, `can't parse MessageEntity: Can't find field "url"`},
		{"name without user", "hello", `[{"type":"text_mention","offset":0,"length":1}]`, `can't parse MessageEntity: Can't find field "user"`},
		{"no JSON", "hello", `bold`, "can't parse entities JSON object"},
		{"too large", "hello", `[{"type":"text_link","offset":0,"length":1,"url":"https://e.org/` + strings.Repeat("x", 9000) + `"}]`, "ENTITIES_TOO_LONG"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := r.call("sendMessage", "chat_id", chat, "text", tt.text, "entities", tt.entities)
			if tt.want == "" {
				r.accepted(a, nil)
				return
			}
			r.refused(a, 400, "Bad Request: "+tt.want)
		})
	}
	var m telegram.Message
	r.must(&m, "sendMessage", "chat_id", chat, "text", strings.Repeat("#a ", 120))
	if len(m.Entities) != 100 {
		t.Errorf("%d entities", len(m.Entities))
	}
	r.refuse(400, "Bad Request: this fake server takes entities, no parse_mode", "sendMessage", "chat_id", chat, "text", "*x*", "parse_mode", "MarkdownV2")
	r.refused(r.upload("sendDocument", map[string][]byte{"document": []byte("x")}, "chat_id", chat, "caption", strings.Repeat("x", 1025)),
		400, "Bad Request: message caption is too long")
}

func TestSendMessage_InvalidPlace(t *testing.T) {
	r := start(t, telegram.Options{})
	alice, bob, eve := r.User("Alice", "alice"), r.User("Bob", "bob"), r.User("Eve", "")
	basic, team, dead, mute := r.Group("Basic", alice), r.Supergroup("Team", alice), r.Group("Dead", alice), r.Supergroup("Mute", alice)
	forum := r.Forum("Ops", alice)
	topic, closed := forum.Topic(alice, "deploys"), forum.Topic(alice, "old")
	basic.RemoveBot(alice)
	team.RemoveBot(alice)
	dead.DeleteGroup()
	mute.Mute(true)
	closed.CloseTopic(true)
	r.Block(bob)
	r.Deactivate(eve)
	deleted := r.DM(alice).Say(alice, "x")
	r.DM(alice).Delete(deleted.ID)
	gone := fmt.Sprintf(`{"message_id":%d}`, deleted.ID)

	tests := []struct {
		name   string
		fields []any
		status int
		want   string
	}{
		{"none", nil, 400, "Bad Request: chat_id is empty"},
		{"unknown", []any{"chat_id", 12345}, 400, "Bad Request: chat not found"},
		{"invalid", []any{"chat_id", "alice"}, 400, "Bad Request: chat not found"},
		{"kicked from a group", []any{"chat_id", basic.ChatID}, 403, "Forbidden: bot was kicked from the group chat"},
		{"kicked from a supergroup", []any{"chat_id", team.ChatID}, 403, "Forbidden: bot was kicked from the supergroup chat"},
		{"deleted group", []any{"chat_id", dead.ChatID}, 403, "Forbidden: the group chat was deleted"},
		{"muted", []any{"chat_id", mute.ChatID}, 400, "Bad Request: not enough rights to send text messages to the chat"},
		{"blocked", []any{"chat_id", bob.ID}, 403, "Forbidden: bot was blocked by the user"},
		{"deactivated", []any{"chat_id", eve.ID}, 403, "Forbidden: user is deactivated"},
		{"General", []any{"chat_id", forum.ChatID, "message_thread_id", 1}, 400, "Bad Request: message thread not found"},
		{"unknown topic", []any{"chat_id", forum.ChatID, "message_thread_id", 999}, 400, "Bad Request: message thread not found"},
		{"closed topic", []any{"chat_id", forum.ChatID, "message_thread_id", closed.ThreadID}, 400, "Bad Request: TOPIC_CLOSED"},
		{"topic", []any{"chat_id", forum.ChatID, "message_thread_id", topic.ThreadID}, 200, ""},
		{"topic of a private chat", []any{"chat_id", alice.ID, "message_thread_id", topic.ThreadID}, 400, "Bad Request: message thread not found"},
		{"deleted message", []any{"chat_id", alice.ID, "reply_parameters", gone}, 400, "Bad Request: message to be replied not found"},
		{"deleted message, deprecated parameter", []any{"chat_id", alice.ID, "reply_to_message_id", deleted.ID}, 400, "Bad Request: message to be replied not found"},
		{"deleted message, optional", []any{"chat_id", alice.ID, "reply_parameters", strings.Replace(gone, "{", `{"allow_sending_without_reply":true,`, 1)}, 200, ""},
		{"malformed reply", []any{"chat_id", alice.ID, "reply_parameters", "7"}, 400, "Bad Request: object expected as reply parameters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := r.call("sendMessage", append(tt.fields, "text", "x")...)
			if tt.status == 200 {
				r.accepted(a, nil)
				return
			}
			r.refused(a, tt.status, tt.want)
		})
	}
	topic.DeleteTopic()
	r.refuse(400, "Bad Request: message thread not found", "sendMessage", "chat_id", forum.ChatID, "message_thread_id", topic.ThreadID, "text", "x")
}

func TestEditAndDelete_InvalidCalls_Refused(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	group := r.Supergroup("Team", alice)
	hers := group.Say(alice, "/mine")
	r.updates()
	var m telegram.Message
	r.must(&m, "sendMessage", "chat_id", group.ChatID, "text", "see @alice")
	edit := func(id int, text string) []any { return []any{"chat_id", group.ChatID, "message_id", id, "text", text} }

	r.refuse(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
		"editMessageText", edit(m.ID, "see @alice")...)
	var edited telegram.Message
	r.must(&edited, "editMessageText", edit(m.ID, "better")...)
	if edited.Text != "better" || edited.EditDate == 0 || len(edited.Entities) != 0 || edited.ID != m.ID {
		t.Errorf("edited to %+v", edited)
	}
	r.must(nil, "editMessageText", append(edit(m.ID, "better"), "entities", `[{"type":"bold","offset":0,"length":6}]`)...)
	r.refuse(400, "Bad Request: message to edit not found", "editMessageText", edit(999, "x")...)
	r.refuse(400, "Bad Request: message identifier is not specified", "editMessageText", "chat_id", group.ChatID, "text", "x")
	r.refuse(400, "Bad Request: message can't be edited", "editMessageText", edit(hers.ID, "x")...)
	r.refuse(400, "Bad Request: message is too long", "editMessageText", edit(m.ID, strings.Repeat("x", 4097))...)
	r.refuse(400, "Bad Request: there is no caption in the message to edit", "editMessageCaption", "chat_id", group.ChatID, "message_id", m.ID, "caption", "x")

	r.accepted(r.upload("sendPhoto", map[string][]byte{"photo": png}, "chat_id", group.ChatID, "caption", "one"), &m)
	r.must(&edited, "editMessageCaption", "chat_id", group.ChatID, "message_id", m.ID, "caption", "two")
	if edited.Caption != "two" {
		t.Errorf("caption %q", edited.Caption)
	}
	r.refuse(400, "Bad Request: there is no text in the message to edit", "editMessageText", edit(m.ID, "x")...)

	r.must(nil, "deleteMessage", "chat_id", group.ChatID, "message_id", m.ID)
	r.refuse(400, "Bad Request: message to delete not found", "deleteMessage", "chat_id", group.ChatID, "message_id", m.ID)
	r.refuse(400, "Bad Request: message can't be deleted", "deleteMessage", "chat_id", group.ChatID, "message_id", hers.ID)
	group.Promote(alice, true)
	r.must(nil, "deleteMessage", "chat_id", group.ChatID, "message_id", hers.ID)
}

func TestSetMessageReaction_KeepsTheLast(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	m := dm.Say(alice, "x")
	react := func(reaction string) answer {
		return r.call("setMessageReaction", "chat_id", dm.ChatID, "message_id", m.ID, "reaction", reaction)
	}
	for _, emoji := range []string{"👍", "❤", "❤️", "❤️‍🔥", "🤷‍♂️", "☃️", "👨‍💻"} {
		r.accepted(react(`[{"type":"emoji","emoji":"`+emoji+`"}]`), nil)
	}
	if got := dm.Reactions(m.ID)[r.Me().ID]; len(got) != 1 || got[0] != "👨‍💻" {
		t.Errorf("reactions %v", got)
	}
	r.accepted(react(`[]`), nil)
	if got := dm.Reactions(m.ID); len(got) != 0 {
		t.Errorf("reactions %v, want none", got)
	}
	r.refused(react(`[{"type":"emoji","emoji":"🍕"}]`), 400, "Bad Request: REACTION_INVALID")
	r.refused(react(`[{"type":"custom_emoji","custom_emoji_id":"1"}]`), 400, "Bad Request: REACTION_INVALID")
	r.refused(react(`[{"type":"emoji","emoji":"👍"},{"type":"emoji","emoji":"🔥"}]`), 400, "Bad Request: REACTIONS_TOO_MANY")
	dm.AllowReactions("👍")
	r.accepted(react(`[{"type":"emoji","emoji":"👍"}]`), nil)
	r.refused(react(`[{"type":"emoji","emoji":"👀"}]`), 400, "Bad Request: REACTION_INVALID")
	r.accepted(react(`[]`), nil)
	r.refused(react(`👍`), 400, "Bad Request: can't parse reaction types JSON object")
	r.refuse(400, "Bad Request: message to react not found", "setMessageReaction", "chat_id", dm.ChatID, "message_id", 999, "reaction", "[]")
}

func TestSendChatAction_Recorded_WithTopic(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	forum := r.Forum("Ops", alice)
	topic := forum.Topic(alice, "deploys")
	r.must(nil, "sendChatAction", "chat_id", forum.ChatID, "action", "typing", "message_thread_id", topic.ThreadID)
	r.must(nil, "sendChatAction", "chat_id", forum.ChatID, "action", "typing", "message_thread_id", 1)
	r.refuse(400, "Bad Request: message thread not found", "sendChatAction", "chat_id", r.DM(alice).ChatID, "action", "typing", "message_thread_id", 1)
	r.refuse(400, "Bad Request: wrong parameter action in request", "sendChatAction", "chat_id", forum.ChatID, "action", "dancing")
	c := r.Sent()[0]
	if c.Action != "typing" || c.ThreadID != topic.ThreadID || c.At.IsZero() {
		t.Errorf("recorded %+v", c)
	}
}

func TestSetMyCommands_InvalidLists_Refused(t *testing.T) {
	r := start(t, telegram.Options{})
	var commands []telegram.Command
	r.must(&commands, "getMyCommands")
	if commands == nil || len(commands) != 0 {
		t.Errorf("got %v, want an empty list", commands)
	}
	r.must(nil, "setMyCommands", "commands", `[{"command":"new","description":"start over"}]`)
	r.must(&commands, "getMyCommands")
	if len(commands) != 1 || commands[0].Command != "new" {
		t.Errorf("got %v", commands)
	}
	r.refuse(400, "Bad Request: BOT_COMMAND_INVALID", "setMyCommands", "commands", `[{"command":"New!","description":"x"}]`)
	r.refuse(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID", "setMyCommands", "commands", `[{"command":"new"}]`)
	r.refuse(400, "Bad Request: can't parse commands JSON object", "setMyCommands")
	r.refuse(400, "Bad Request: can't parse BotCommandScope: unsupported type specified", "getMyCommands", "scope", `{"type":"nowhere"}`)
	r.refuse(400, "Bad Request: invalid language code specified", "getMyCommands", "language_code", "english")
}
