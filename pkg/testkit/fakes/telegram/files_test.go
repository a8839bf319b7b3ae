package telegram_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/telegram"
)

func TestSendFiles_EachKind_IsRecorded(t *testing.T) {
	r := start(t, telegram.Options{})
	chat := r.DM(r.User("Alice", "alice")).ChatID
	for _, kind := range []string{"photo", "document", "video", "audio", "voice"} {
		t.Run(kind, func(t *testing.T) {
			method := "send" + strings.ToUpper(kind[:1]) + kind[1:]
			var m map[string]any
			r.accepted(r.upload(method, map[string][]byte{kind: png}, "chat_id", chat, "caption", "see #this"), &m)
			if m[kind] == nil {
				t.Fatalf("got %v", m)
			}
			fakeservertest.Subset(t, m, `{"caption":"see #this","caption_entities":[{"type":"hashtag"}]}`)
			sent := r.Sent()
			c := sent[len(sent)-1]
			if len(c.Files) != 1 || c.Files[0].Kind != kind || c.Files[0].Name != kind+".bin" || !bytes.Equal(c.Files[0].Data, png) || c.Text != "see #this" {
				t.Errorf("recorded %+v", c)
			}
			r.refuse(400, "Bad Request: there is no "+kind+" in the request", method, "chat_id", chat)
			r.refuse(400, "Bad Request: wrong file identifier/HTTP URL specified", method, "chat_id", chat, kind, "nonsense")
			r.refused(r.upload(method, map[string][]byte{kind: {}}, "chat_id", chat), 400, "Bad Request: file must be non-empty")
		})
	}
	r.refused(r.upload("sendPhoto", map[string][]byte{"photo": []byte("plain text")}, "chat_id", chat), 400, "Bad Request: IMAGE_PROCESS_FAILED")
	r.refused(r.upload("sendPhoto", map[string][]byte{"photo": append(png, make([]byte, 10<<20)...)}, "chat_id", chat), 400,
		fmt.Sprintf("Bad Request: file of size %d bytes is too big for a photo; the maximum size is 10485760 bytes", len(png)+10<<20))
}

func TestSendFiles_TooLarge(t *testing.T) {
	t.Parallel()
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	chat := r.DM(alice).ChatID
	for _, size := range []int{50<<20 + 1, 60 << 20} {
		r.refused(r.upload("sendDocument", map[string][]byte{"document": make([]byte, size)}, "chat_id", chat), 413, "Request Entity Too Large")
	}
	r.accepted(r.upload("sendDocument", map[string][]byte{"document": make([]byte, 50<<20)}, "chat_id", chat), nil)
	if n := len(r.Sent()); n != 1 {
		t.Errorf("%d calls carried out", n)
	}
	r = start(t, telegram.Options{Local: true})
	r.accepted(r.upload("sendDocument", map[string][]byte{"document": make([]byte, 50<<20+1)}, "chat_id", r.DM(r.User("Alice", "alice")).ChatID), nil)
}

func TestGetFile_InvalidCalls_Refused(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	r.refuse(400, "Bad Request: invalid file_id", "getFile", "file_id", "nonsense")
	large := dm.Attach(alice, telegram.Attachment{Kind: "video", Name: "film.mp4", Data: make([]byte, 20<<20+1)}, "")
	r.refuse(400, "Bad Request: file is too big", "getFile", "file_id", large.Video.FileID)
	r.InjectFault(telegram.Fault{Method: "download", Status: 502})
	for _, want := range []int{502, 404} {
		if a := r.request(http.MethodGet, "/file/bot"+r.Token()+"/videos/file_1.mp4", nil, ""); a.Status != want {
			t.Errorf("a large file: %d, want %d", a.Status, want)
		}
	}
}

func TestPoll_InvalidCalls_Refused(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	group := r.Supergroup("Team", alice)
	ask := func(fields ...any) []any { return append([]any{"chat_id", group.ChatID}, fields...) }
	var m telegram.Message
	r.must(&m, "sendPoll", ask("question", "When?", "options", `[{"text":"now"},"later"]`, "is_anonymous", "false", "allows_multiple_answers", "true")...)
	if p := m.Poll; p == nil || p.ID == "" || p.Options[0].Text != "now" || p.Options[1].Text != "later" || p.IsAnonymous || !p.Multiple {
		t.Fatalf("got %+v", m.Poll)
	}
	r.must(nil, "stopPoll", ask("message_id", m.ID)...)
	r.refuse(400, "Bad Request: poll has already been closed", "stopPoll", ask("message_id", m.ID)...)
	r.refuse(400, "Bad Request: message with poll to stop not found", "stopPoll", ask("message_id", 999)...)
	hers := group.Poll(alice, "Mine?", "yes", "no")
	r.refuse(400, "Bad Request: poll can't be stopped", "stopPoll", ask("message_id", hers.ID)...)

	many := `["o"` + strings.Repeat(`,"o"`, 12) + `]`
	tests := []struct{ question, options, want string }{
		{"When?", `["now"]`, "poll must have at least 2 option"},
		{"When?", many, "poll can't have more than 12 options"},
		{"", `["a","b"]`, "text must be non-empty"},
		{"When?", `["a",""]`, "text must be non-empty"},
		{strings.Repeat("x", 301), `["a","b"]`, "poll question length must not exceed 300"},
		{"When?", `["a","` + strings.Repeat("x", 101) + `"]`, "poll options length must not exceed 100"},
		{"When?", `nonsense`, "can't parse options JSON object"},
		{"When?", `[1,2]`, "can't parse options JSON object"},
	}
	for _, tt := range tests {
		r.refuse(400, "Bad Request: "+tt.want, "sendPoll", ask("question", tt.question, "options", tt.options)...)
	}
}
