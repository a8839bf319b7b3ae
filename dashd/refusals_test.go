package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"arizuko/pkg/config"
)

// A browser that reloads a page while dashd starts gets a page, with its style, that is loaded again by itself. What a form
// sends is not sent again.
func TestStarting_Browser_GetsAPageThatRetries(t *testing.T) {
	cfg, err := config.Load[Config]([]string{"ARIZUKO_DATA=" + dataFolder(t), "DASHD_ADDR=127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := start(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const retry = `<meta http-equiv="refresh" content="2">`
	b := (&process{dashd: d, t: t}).browser()
	for _, path := range []string{"/", "/chat/main", "/turns?state=failed", "/nowhere"} {
		a := b.must(503, "GET", path, "")
		if !strings.Contains(a.body, "dashd is starting") || !strings.Contains(a.body, retry) || a.Get("Retry-After") != "2" || a.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %v %.600s", path, a.Header, a.body)
		}
		if program := b.must(503, "GET", path, "", "Accept: application/json"); program.kind() != "unavailable" {
			t.Errorf("%s, as a program: %.200s", path, program.body)
		}
	}
	style := regexp.MustCompile(`/assets/[^"]*style.css`).FindString(b.get("/").body)
	b.must(200, "GET", style, "", "Accept: text/css")
	if a := b.must(503, "POST", "/turns/1/retry", ""); strings.Contains(a.body, retry) || !strings.Contains(a.body, "dashd is starting") {
		t.Errorf("a form: %.600s", a.body)
	}
}

// TestRefusals_Browser_GetsAPage: what a browser opens or sends is answered with a page, also where it is refused. Scripts and
// programs get the reason in JSON.
func TestRefusals_Browser_GetsAPage(t *testing.T) {
	p := serve(t, dataFolder(t))
	b, stranger := p.operator(), p.browser()
	own := "Origin: " + b.base
	for name, refused := range map[string]struct {
		by           *browser
		method, path string
		headers      []string
		status       int
		says         string
	}{
		"unknown address":      {b, "GET", "/nowhere", nil, 404, "There is no such page"},
		"slash at the end":     {b, "GET", "/turns/", nil, 404, "/turns/"},
		"address of a form":    {b, "GET", "/turns/1/retry", nil, 400, "nothing was changed"},
		"page that takes none": {b, "POST", "/turns", []string{own}, 400, "nothing was changed"},
		"no such group":        {b, "GET", "/chat/none", nil, 404, "There is no group &#34;none&#34;"},
		"file without one":     {b, "GET", "/chat/main/file", nil, 404, "has no file 1"},
		"other site's form":    {b, "POST", "/turns/1/retry", []string{"Origin: https://evil.example"}, 403, "other sites"},
		"other name":           {b, "GET", "/", []string{"Host: evil.example"}, 403, "not the dashboard"},
		"login that ended":     {stranger, "POST", "/turns/1/retry", []string{own}, 401, `<a href="/login">`},
		"unknown, no login":    {stranger, "GET", "/nowhere", nil, 404, "There is no such page"},
		"escaped address":      {b, "GET", "/%3Cscript%3Ehit=1%3C/script%3E", nil, 404, "&lt;script&gt;"},
	} {
		a := refused.by.do(refused.method, refused.path, "", refused.headers...)
		if a.status != refused.status || !strings.HasPrefix(a.Get("Content-Type"), "text/html") || !strings.Contains(a.body, "<h1>") || !strings.Contains(a.body, refused.says) {
			t.Errorf("%s: %d %s, want a page with %q: %.300s", name, a.status, a.Get("Content-Type"), refused.says, a.body)
		}
		if a.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: the page has no content security policy", name)
		}
		program := refused.by.do(refused.method, refused.path, "", append(refused.headers, "Accept: */*")...)
		if program.status != refused.status || program.kind() == "" {
			t.Errorf("%s, as a program: %d %.200s, want JSON", name, program.status, program.body)
		}
	}
}
