package fakeserver_test

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

func TestReadLimited_LongBody_TooLarge(t *testing.T) {
	for body, want := range map[string]bool{"": false, "1234": false, "12345": true, strings.Repeat("x", 100): true} {
		sent := strings.NewReader(body)
		r := httptest.NewRequest(http.MethodPost, "/", sent)
		var got string
		tooLarge, err := fakeserver.ReadLimited(r, 4, func(b io.Reader) error {
			all, err := io.ReadAll(b)
			got = string(all)
			return err
		})
		if tooLarge != want || err != nil || !want && got != body {
			t.Errorf("%q: too large is %v, read %q, %v", body, tooLarge, got, err)
		}
		if unread := sent.Len(); want && unread != max(len(body)-13, 0) { // 4+1 read, 8 dropped
			t.Errorf("%q: %d bytes unread", body, unread)
		}
	}
}

func TestReadLimited_ReturnsErrorOfRead(t *testing.T) {
	want := errors.New("failed")
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
	if _, err := fakeserver.ReadLimited(r, 4, func(io.Reader) error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

func TestReadParts_CutForm_Error(t *testing.T) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("text", "hello")
	file, _ := form.CreateFormFile("photo", "a.png")
	_, _ = file.Write([]byte("png"))
	_ = form.Close()
	whole := body.String()
	read := func(body string) (parts []fakeserver.Part, err error) {
		err = fakeserver.ReadParts(strings.NewReader(body), form.Boundary(), func(p fakeserver.Part) error {
			parts = append(parts, p)
			return nil
		})
		return parts, err
	}
	parts, err := read(whole)
	if diff := cmp.Diff([]fakeserver.Part{{"text", "", []byte("hello")}, {"photo", "a.png", []byte("png")}}, parts); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, body := range []string{whole[:len(whole)/2], whole[:len(whole)-30]} {
		if _, err := read(body); !errors.Is(err, fakeserver.ErrMultipart) {
			t.Errorf("%q: %v", body, err)
		}
	}
	refused := errors.New("refused")
	err = fakeserver.ReadParts(strings.NewReader(whole), form.Boundary(), func(fakeserver.Part) error { return refused })
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestParams_AddJSON(t *testing.T) {
	p := fakeserver.Params{"kept": "1"}
	if err := p.AddJSON([]byte(`{"text":"a\nb","n":7,"no":null,"list":[1, 2],"yes":true}`)); err != nil {
		t.Fatal(err)
	}
	want := fakeserver.Params{"kept": "1", "text": "a\nb", "n": "7", "list": "[1, 2]", "yes": "true"}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, body := range []string{"", "{", "[]", `"text"`} {
		if err := p.AddJSON([]byte(body)); err == nil {
			t.Errorf("%q: no error", body)
		}
	}
	for name, want := range map[string]int64{"n": 7, "text": -1, "missing": -1} {
		if got := p.Int(name, -1); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
