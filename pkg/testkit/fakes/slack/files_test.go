package slack_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

// put uploads a file, and returns its id.
func (r *fixture) put(name string, data []byte) string {
	r.t.Helper()
	a := r.must("files.getUploadURLExternal", "filename", name, "length", len(data))
	if up := r.request(http.MethodPost, a.str("upload_url"), "", "application/octet-stream", bytes.NewReader(data)); up.Status != 200 {
		r.t.Fatalf("%d %s", up.Status, up.Body)
	}
	return a.str("file_id")
}

func TestUpload_Files_SharedInOneMessage(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	m := team.Say(alice, "x")
	w := r.dial()
	w.events(1)
	a, b := r.put("a.txt", []byte("first")), r.put("b.bin", []byte("second"))
	r.DelayShares(1)
	done := r.must("files.completeUploadExternal", "files", []map[string]string{{"id": a, "title": "First"}, {"id": b}},
		"channel_id", team.ChannelID, "thread_ts", m.TS, "initial_comment", "<!here> see")
	fakeservertest.Subset(t, done.Fields, fmt.Sprintf(`{"files": [{"id": %q, "title": "First"}, {"id": %q, "title": "b.bin"}]}`, a, b))
	w.event(fmt.Sprintf(`{"subtype": "file_share", "text": "<!here> see", "thread_ts": %q, "bot_id": %q, "upload": true,
		"files": [{"id": %q, "title": "First", "mimetype": "text/plain", "size": 5}, {"id": %q}]}`, m.TS, r.Me().BotID, a, b))
	posted := team.Messages()[1]
	if early := r.must("files.info", "file", a).Fields["file"].(map[string]any)["shares"].(map[string]any)["public"].(map[string]any); len(early) != 0 {
		t.Errorf("shares too early: %v", early)
	}
	fakeservertest.Subset(t, r.must("files.info", "file", a).Fields, fmt.Sprintf(`{"file": {"name": "a.txt", "shares": {"public": {%q: [{"ts": %q, "thread_ts": %q}]}}}}`,
		team.ChannelID, posted.TS, m.TS))
	call, err := r.Wait(r.ctx, func(c slack.Call) bool { return c.Method == "files.completeUploadExternal" })
	if err != nil || len(call.Files) != 2 || string(call.Files[1].Data) != "second" || call.TS != posted.TS || len(call.Pings) != 1 || call.ThreadTS != m.TS {
		t.Errorf("recorded %+v, %v", call, err)
	}
	complete := "files.completeUploadExternal"
	r.refuse("file_not_found", complete, "files", `[{"id":"`+a+`"}]`, "channel_id", team.ChannelID)
	r.refuse("invalid_arguments", complete, "files", `{}`)
	r.refuse("channel_not_found", complete, "files", []map[string]string{{"id": r.put("c", []byte("c"))}}, "channel_id", "C404")
	r.refuse("invalid_thread_ts", complete, "files", []map[string]string{{"id": r.put("c", []byte("c"))}}, "channel_id", team.ChannelID, "thread_ts", "1.0")
	r.refuse("file_upload_size_restricted", "files.getUploadURLExternal", "filename", "big", "length", 1<<30+1)
	r.refuse("missing_argument", "files.getUploadURLExternal", "filename", "x")
	r.refuse("file_not_found", "files.info", "file", "F404")
	r.refuse("file_not_found", "files.info", "file", r.must("files.getUploadURLExternal", "filename", "x", "length", 1).str("file_id"))
}

func TestUpload_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	begin := func() answer { return r.must("files.getUploadURLExternal", "filename", "x.txt", "length", 4) }
	a := begin()
	for _, body := range []string{"", "too long"} {
		if up := r.request(http.MethodPost, a.str("upload_url"), "", "", strings.NewReader(body)); up.Status != 400 {
			t.Errorf("%q: %d %s", body, up.Status, up.Body)
		}
	}
	r.refuse("file_not_found", "files.completeUploadExternal", "files", `[{"id":"`+a.str("file_id")+`"}]`)
	r.InjectFault(slack.Fault{Method: "upload", Status: 503}, slack.Fault{Method: "upload", Drop: true, After: true})
	for _, want := range []int{503, 0, 200} {
		if up := r.request(http.MethodPost, a.str("upload_url"), "", "", strings.NewReader("four")); up.Status != want {
			t.Errorf("got %d %s, want %d", up.Status, up.Body, want)
		}
	}
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, err := parts.CreateFormFile("filename", "x.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write([]byte("four"))
	_ = parts.Close()
	if up := r.request(http.MethodPost, begin().str("upload_url"), "", parts.FormDataContentType(), &form); up.Body != "OK - 4" {
		t.Errorf("as a form: %d %s", up.Status, up.Body)
	}
	if up := r.request(http.MethodPost, r.base+"/upload/v1/F404", "", "", strings.NewReader("x")); up.Status != 400 {
		t.Errorf("an unknown one: %d", up.Status)
	}
}

func TestDownload_PrivateURLs_ServeFile(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	w := r.dial()
	m := r.DM(alice).Share(alice, slack.Attachment{Name: "a page.html", Data: []byte("<p>hello")}, "see")
	w.event(`{"subtype": "file_share", "text": "see", "upload": false, "files": [{"name": "a page.html", "mimetype": "text/html", "size": 8, "filetype": "html"}]}`)
	f := m.Files[0]
	for _, address := range []string{f.URLPrivate, f.URLPrivateDownload} {
		if !strings.HasPrefix(address, r.base) {
			t.Errorf("URL %s", address)
		}
		if a := r.request(http.MethodGet, address, r.BotToken(), "", nil); a.Status != 200 || a.Body != "<p>hello" {
			t.Errorf("%s: %d %s", address, a.Status, a.Body)
		}
		for _, token := range []string{"", "xoxb-wrong", r.AppToken()} {
			a := r.request(http.MethodGet, address, token, "", nil)
			if a.Status != 200 || !strings.Contains(a.Body, "Sign in") || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
				t.Errorf("with %q: %d %s", token, a.Status, a.Body)
			}
		}
	}
	if a := r.request(http.MethodGet, r.base+"/files-pri/T0FAKE00000-F404/x", r.BotToken(), "", nil); a.Status != 404 {
		t.Errorf("an unknown one: %d", a.Status)
	}
	r.InjectFault(slack.Fault{Method: "download", Status: 500})
	if a := r.request(http.MethodGet, f.URLPrivate, r.BotToken(), "", nil); a.Status != 500 {
		t.Errorf("with a fault: %d", a.Status)
	}
	without := start(t, slack.Options{Scopes: []string{"chat:write"}})
	eve := without.User("Eve", "eve")
	hers := without.DM(eve).Share(eve, slack.Attachment{Name: "x", Data: []byte("x")}, "").Files[0]
	if a := without.request(http.MethodGet, hers.URLPrivate, without.BotToken(), "", nil); !strings.Contains(a.Body, "Sign in") {
		t.Errorf("without the scope: %d %s", a.Status, a.Body)
	}
}
