package main

import (
	"bytes"
	"io/fs"
	"mime/multipart"
	"os"
	"strings"
	"testing"
)

// formBody is a form with a file, and its type.
func formBody(name, content string) (body, kind string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", name) // a buffer cannot fail
	_, _ = part.Write([]byte(content))
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

// mediaFiles are the files below media/.
func mediaFiles(t *testing.T, data string) (all []string) {
	t.Helper()
	all, err := fs.Glob(os.DirFS(data), "media/*/*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Forms need no permission of the browser to be sent from another site.
func TestUpload_OtherSiteOrNoLogin_Refused(t *testing.T) {
	p := serve(t, dataFolder(t))
	b := p.operator()
	body, kind := formBody("a.txt", "x")
	for _, header := range []string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		if a := b.do("POST", "/chat/main/messages", body, "Content-Type: "+kind, header); a.status != 403 {
			t.Errorf("%s: %d %s", header, a.status, a.body)
		}
	}
	if a := p.browser().do("POST", "/chat/main/messages", body, "Content-Type: "+kind); a.status != 401 {
		t.Errorf("without a login: %d %s", a.status, a.body)
	}
	if a := b.do("POST", "/chat/none/messages", body, "Content-Type: "+kind); a.status != 404 {
		t.Errorf("no such group: %d %s", a.status, a.body)
	}
	if files := mediaFiles(t, p.data); len(files) != 0 {
		t.Errorf("stored: %q", files)
	}
	b.must(202, "POST", "/chat/main/messages", body, "Content-Type: "+kind, "Origin: "+b.base)
	if files := mediaFiles(t, p.data); len(files) != 1 {
		t.Errorf("stored: %q", files)
	}
	got := b.must(200, "GET", "/chat/main/messages", "").body
	if !strings.Contains(got, `"sender":"web:operator"`) || !strings.Contains(got, `"name":"a.txt"`) {
		t.Errorf("%s", got)
	}
}

func TestUpload_Limits_AreThoseOfTheEnvironment(t *testing.T) {
	p := serve(t, dataFolder(t), "MEDIA_MAX=2097152", "MEDIA_DAILY=3000000")
	b := p.program()
	large := func(bytes int) answer {
		body, kind := formBody("large.bin", strings.Repeat("x", bytes))
		return b.do("POST", "/chat/main/messages", body, "Content-Type: "+kind)
	}
	if a := large(2<<20 + 1); a.status != 413 || !strings.Contains(a.body, `\"large.bin\" is larger than 2 MiB`) {
		t.Errorf("a byte too many: %d %s", a.status, a.body)
	}
	if a := large(2 << 20); a.status != 202 {
		t.Errorf("the largest: %d %s", a.status, a.body)
	}
	if a := large(1 << 20); a.status != 409 || !strings.Contains(a.body, "MEDIA_DAILY") {
		t.Errorf("too many in a day: %d %s", a.status, a.body)
	}
	contains(t, b.must(200, "GET", "/chat/main", "").body, `data-max-file="2097152" data-max-files="10"`, "up to 10 of 2 MiB each")
}

// An empty chat says who answers.
func TestChatPage_FirstScreen_NamesTheAgent(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `INSERT INTO router_state (key, value) VALUES ('demo_agent', 1)`)
	shell(t, data, `INSERT INTO registered_groups (folder, created_at, config) VALUES ('own', 0, '{"assistant_name":"Ada <b>","agent":{"command":"x"}}'), ('broken', 0, '{"x":1}')`)
	b := serve(t, data, "ASSISTANT_NAME=Robin").program()
	for folder, want := range map[string]struct {
		name string
		demo bool
	}{"main": {"Robin", true}, "own": {"Ada &lt;b&gt;", false}, "broken": {"Robin", true}} {
		page := b.must(200, "GET", "/chat/"+folder, "").body
		if !strings.Contains(page, "Write to <bdi>"+want.name+"</bdi>") || strings.Contains(page, "demo agent") != want.demo {
			t.Errorf("%s: %.3000s", folder, page)
		}
	}
	shell(t, data, `UPDATE router_state SET value = 0 WHERE key = 'demo_agent'`)
	if page := b.must(200, "GET", "/chat/main", "").body; strings.Contains(page, "demo agent") {
		t.Errorf("%.3000s", page)
	}
}
