package telegram_test

import (
	"fmt"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/telegram"
)

const everything = `["message","edited_message","message_reaction","my_chat_member","chat_member","poll","poll_answer"]`

func TestUpdates_EachKind_HasDocumentedShape(t *testing.T) {
	r := start(t, telegram.Options{PrivacyOff: true})
	alice, bob := r.User("Alice", "alice"), r.User("Bob", "")
	dm, group := r.DM(alice), r.Supergroup("Team", alice, bob)
	group.Promote(alice, true)
	r.updates()
	r.must(nil, "getUpdates", "allowed_updates", everything)

	tests := []struct {
		name string
		act  func()
		kind string
		want string
	}{
		{"text in a private chat", func() { dm.Say(alice, "hello") }, "message", fmt.Sprintf(
			`{"from":{"id":%d,"is_bot":false,"first_name":"Alice","username":"alice","language_code":"en"},
			  "chat":{"id":%d,"type":"private","first_name":"Alice","username":"alice","title":null},
			  "text":"hello","entities":null,"message_thread_id":null,"is_topic_message":null}`, alice.ID, alice.ID)},
		{"entities in UTF-16 units", func() { group.Say(alice, "😀 @arizuko_bot see https://a.b/c, /run@arizuko_bot #héllo x@y.org") }, "message",
			`{"chat":{"type":"supergroup","title":"Team","is_forum":null},"entities":[
			  {"type":"mention","offset":3,"length":12}, {"type":"url","offset":20,"length":13},
			  {"type":"bot_command","offset":35,"length":16}, {"type":"hashtag","offset":52,"length":6},
			  {"type":"email","offset":59,"length":7}]}`},
		{"a name without a username", func() {
			group.Say(alice, "Bob!", telegram.Entity{Type: "text_mention", Length: 3, User: &bob})
		}, "message", fmt.Sprintf(`{"entities":[{"type":"text_mention","offset":0,"length":3,"user":{"id":%d,"first_name":"Bob"}}]}`, bob.ID)},
		{"nothing is found in code", func() {
			group.Say(alice, "/a @arizuko_bot", telegram.Entity{Type: "code", Length: 15})
		}, "message", `{"entities":[{"type":"code","offset":0,"length":15}]}`},
		{"a join", func() {
			group.Leave(bob)
			r.updates()
			r.must(nil, "getUpdates", "allowed_updates", `["message"]`)
			group.Join(bob)
		},
			"message", fmt.Sprintf(`{"from":{"id":%d},"new_chat_members":[{"id":%d}]}`, bob.ID, bob.ID)},
		{"a removal", func() { group.Remove(alice, bob) }, "message", fmt.Sprintf(`{"from":{"id":%d},"left_chat_member":{"id":%d}}`, alice.ID, bob.ID)},
		{"a caption", func() { dm.Photo(alice, png, "look @arizuko_bot") }, "message",
			`{"text":null,"caption":"look @arizuko_bot","caption_entities":[{"type":"mention","offset":5,"length":12}]}`},
		{"a document", func() { dm.Document(alice, "plan.pdf", []byte("%PDF"), "") }, "message",
			`{"document":{"file_name":"plan.pdf","mime_type":"application/pdf","file_size":4},"caption":null}`},
		{"a forward", func() { m := dm.Say(alice, "x"); r.updates(); group.Forward(alice, m) }, "message",
			fmt.Sprintf(`{"text":"x","forward_origin":{"type":"user","sender_user":{"id":%d}}}`, alice.ID)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.act()
			fakeservertest.Subset(t, r.event(tt.kind), tt.want)
		})
	}
}

func TestUpdates_RepliesAndTopics_NameTheirThread(t *testing.T) {
	r := start(t, telegram.Options{PrivacyOff: true})
	alice := r.User("Alice", "alice")
	forum, team := r.Forum("Ops", alice), r.Supergroup("Team", alice)

	deploys := forum.Topic(alice, "deploys")
	fakeservertest.Subset(t, r.event("message"), fmt.Sprintf(
		`{"message_id":%d,"message_thread_id":%d,"is_topic_message":true,"chat":{"is_forum":true},
		  "forum_topic_created":{"name":"deploys","icon_color":7322096}}`, deploys.ThreadID, deploys.ThreadID))

	first := deploys.Say(alice, "in the topic")
	fakeservertest.Subset(t, r.event("message"), fmt.Sprintf(
		`{"message_thread_id":%d,"is_topic_message":true,"reply_to_message":{"message_id":%d,"forum_topic_created":{"name":"deploys"}}}`,
		deploys.ThreadID, deploys.ThreadID))

	forum.Reply(alice, first.ID, "an answer stays in the topic")
	fakeservertest.Subset(t, r.event("message"), fmt.Sprintf(
		`{"message_thread_id":%d,"is_topic_message":true,"reply_to_message":{"message_id":%d,"text":"in the topic","reply_to_message":null}}`,
		deploys.ThreadID, first.ID))

	general := forum.Say(alice, "in General")
	fakeservertest.Subset(t, r.event("message"), `{"message_thread_id":null,"is_topic_message":null,"reply_to_message":null}`)
	forum.Reply(alice, general.ID, "answered in General")
	fakeservertest.Subset(t, r.event("message"), fmt.Sprintf(`{"message_thread_id":%d,"is_topic_message":null}`, general.ID))

	root := team.Say(alice, "root")
	r.updates()
	next := team.Reply(alice, root.ID, "one")
	fakeservertest.Subset(t, r.event("message"), fmt.Sprintf(`{"message_thread_id":%d,"is_topic_message":null,"reply_to_message":{"message_id":%d}}`, root.ID, root.ID))
	team.Reply(alice, next.ID, "two")
	fakeservertest.Subset(t, r.event("message"), fmt.Sprintf(`{"message_thread_id":%d,"reply_to_message":{"message_id":%d}}`, root.ID, next.ID))

	r.refuse(400, "Bad Request: message thread not found", "sendMessage", "chat_id", team.ChatID, "message_thread_id", root.ID, "text", "x")
	var sent telegram.Message
	r.must(&sent, "sendMessage", "chat_id", forum.ChatID, "text", "x", "reply_parameters", fmt.Sprintf(`{"message_id":%d}`, first.ID))
	if sent.Thread != deploys.ThreadID || !sent.IsTopic || sent.ReplyTo.ID != first.ID {
		t.Errorf("a reply without a thread went to %+v, want the topic of the message", sent)
	}
}

func TestUpdates_PrivacyMode_HidesOtherMessages(t *testing.T) {
	r := start(t, telegram.Options{})
	alice, other := r.User("Alice", "alice"), r.OtherBot("Helper", "helper_bot")
	group := r.Supergroup("Team", alice, other)
	var sent telegram.Message
	r.must(&sent, "sendMessage", "chat_id", group.ChatID, "text", "hi")
	tests := []struct {
		name string
		say  func()
		sees bool
	}{
		{"plain", func() { group.Say(alice, "hello") }, false},
		{"mention", func() { group.Say(alice, "hey @Arizuko_Bot") }, true},
		{"mention in a caption", func() { group.Photo(alice, png, "@arizuko_bot") }, true},
		{"mention of another", func() { group.Say(alice, "hey @helper_bot") }, false},
		{"text mention", func() {
			me := r.Me()
			group.Say(alice, "bot", telegram.Entity{Type: "text_mention", Length: 3, User: &me})
		}, true},
		{"command", func() { group.Say(alice, "/start now") }, true},
		{"own command", func() { group.Say(alice, "/start@arizuko_bot") }, true},
		{"command for another", func() { group.Say(alice, "/start@helper_bot") }, false},
		{"command within", func() { group.Say(alice, "try /start") }, false},
		{"reply to the bot", func() { group.Reply(alice, sent.ID, "ok") }, true},
		{"another bot", func() { group.Say(other, "beep") }, false},
		{"another bot that mentions", func() { group.Say(other, "@arizuko_bot beep") }, true},
		{"join", func() { group.Join(r.User("Eve", "")) }, true},
		{"private", func() { r.DM(alice).Say(alice, "hello") }, true},
		{"off", func() { r.SetPrivacy(false); group.Say(alice, "hello"); r.SetPrivacy(true) }, true},
		{"administrator", func() { group.Promote(alice, true); r.updates(); group.Say(alice, "hello") }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.say()
			if got := len(r.updates()); (got == 1) != tt.sees {
				t.Errorf("%d updates, want seen: %v", got, tt.sees)
			}
		})
	}
	var me map[string]any
	r.must(&me, "getMe")
	fakeservertest.Subset(t, me, fmt.Sprintf(`{"id":%d,"is_bot":true,"username":"arizuko_bot","can_read_all_group_messages":false}`, r.Me().ID))
}
