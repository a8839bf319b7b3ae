package telegram_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/testkit/fakes/telegram"
)

func TestSendMessageDraft_PrivateChat_IsShownUntilTheMessage(t *testing.T) {
	t.Parallel()
	r := start(t, telegram.Options{})
	dm := r.DM(r.User("Alice", "alice"))
	dm.Say(r.Place(dm.ChatID, 0).Members()[0], "/start")
	for _, text := range []string{"", "one", "one two"} {
		if a := r.call("sendMessageDraft", "chat_id", dm.ChatID, "draft_id", 7, "text", text); !a.OK || string(a.Result) != "true" {
			t.Fatalf("%q: %s", text, a.body)
		}
		if d := dm.Drafts(); len(d) != 1 || d[0].Text != text {
			t.Errorf("drafts %+v", d)
		}
	}
	if n := len(dm.Messages()); n != 1 {
		t.Errorf("%d messages", n)
	}
	r.call("sendMessage", "chat_id", dm.ChatID, "text", "done")
	if d := dm.Drafts(); d != nil {
		t.Errorf("after the message: %+v", d)
	}
}

func TestSendMessageDraft_Refusals(t *testing.T) {
	t.Parallel()
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	dm, group := r.DM(alice).ChatID, r.Supergroup("Team", alice).ChatID
	for _, tt := range []struct {
		chat  int64
		draft int
		text  string
		more  []any
		code  int
		want  string
	}{
		{group, 1, "x", nil, 400, "Bad Request: TEXTDRAFT_PEER_INVALID"},
		{dm, 0, "x", nil, 400, "Bad Request: invalid draft identifier specified"},
		{dm, 1, strings.Repeat("x", 4097), nil, 400, "Bad Request: message is too long"},
		{dm, 1, "x", []any{"message_thread_id", 5}, 400, "Bad Request: message thread not found"},
		{dm, 1, "x", []any{"entities", `[{"type":"bold","offset":0,"length":2}]`}, 400, "Bad Request: entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 2"},
		{4711, 1, "x", nil, 400, "Bad Request: chat not found"},
	} {
		r.refused(r.call("sendMessageDraft", append([]any{"chat_id", tt.chat, "draft_id", tt.draft, "text", tt.text}, tt.more...)...), tt.code, tt.want)
	}
}

func TestDrafts_Expire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegram.New(telegram.Options{})
		dm := s.DM(s.User("Alice", "alice"))
		direct(s, "sendMessageDraft", "chat_id", dm.ChatID, "draft_id", 7, "text", "one")
		time.Sleep(29 * time.Second) //nolint:forbidigo // in a bubble
		if len(dm.Drafts()) != 1 {
			t.Error("the draft is gone too early")
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		if len(dm.Drafts()) != 0 {
			t.Error("the draft stays")
		}
	})
}

// Edits count like messages.
func TestEditMessageText_AboveTheRate_IsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, telegram.Options{RateLimits: true})
	chat := r.DM(r.User("Alice", "alice")).ChatID
	r.call("sendMessage", "chat_id", chat, "text", "0")
	id := r.Sent()[0].MessageID
	for i := range 3 {
		if a := r.call("editMessageText", "chat_id", chat, "message_id", id, "text", i+1); !a.OK {
			t.Fatal(a.body)
		}
	}
	a := r.call("editMessageText", "chat_id", chat, "message_id", id, "text", "more")
	if a.Status != 429 || a.Parameters.RetryAfter == 0 {
		t.Errorf("%s", a.body)
	}
}
