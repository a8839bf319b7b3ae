// Package pagetest tests the pages of fakes: a client that fills in their forms, and a conversation
// in a real browser.
package pagetest

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

const formType = "application/x-www-form-urlencoded"

// Site is a served page. A request without an answer fails the test.
type Site struct {
	URL    string
	Client *http.Client
	t      testing.TB
}

// Open serves a page until the test ends.
func Open(t testing.TB, page http.Handler) *Site {
	t.Helper()
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	return &Site{URL: server.URL, Client: server.Client(), t: t}
}

// Do sends a request with headers, given as name, value, name, value. Redirects are followed.
func (s *Site) Do(method, path string, body io.Reader, header ...string) (status int, answer string, got http.Header) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(all), resp.Header
}

// Get loads a page.
func (s *Site) Get(path string) (status int, page string) {
	s.t.Helper()
	status, page, _ = s.Do(http.MethodGet, path, nil)
	return status, page
}

// Post sends a form without files.
func (s *Site) Post(path string, fields url.Values) (status int, page string) {
	s.t.Helper()
	status, page, _ = s.Do(http.MethodPost, path, strings.NewReader(fields.Encode()), "Content-Type", formType)
	return status, page
}

// Send sends the form for a message, with fields as name, value, name, value, and a file
// notes.txt unless that is nil.
func (s *Site) Send(file []byte, fields ...string) (status int, page string) {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		_ = form.WriteField(fields[i], fields[i+1]) // a buffer takes everything
	}
	if file != nil {
		part, err := form.CreateFormFile("file", "notes.txt")
		if err != nil {
			s.t.Fatal(err)
		}
		_, _ = part.Write(file)
	}
	_ = form.Close()
	status, page, _ = s.Do(http.MethodPost, "/send", &body, "Content-Type", form.FormDataContentType())
	return status, page
}

// Shows fails the test unless a page contains all of want.
func (s *Site) Shows(page string, want ...string) {
	s.t.Helper()
	for _, w := range want {
		if !strings.Contains(page, w) {
			s.t.Errorf("%q is not in the page:\n%s", w, page)
		}
	}
}

// Hides fails the test if a page contains any of unwanted.
func (s *Site) Hides(page string, unwanted ...string) {
	s.t.Helper()
	for _, u := range unwanted {
		if strings.Contains(page, u) {
			s.t.Errorf("%q is in the page:\n%s", u, page)
		}
	}
}
