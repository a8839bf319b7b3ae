package fakeserver_test

import (
	"errors"
	"io"
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
		var got []byte
		tooLarge, err := fakeserver.ReadLimited(r, 4, func(b io.Reader) (err error) {
			got, err = io.ReadAll(b)
			return err
		})
		if tooLarge != want || err != nil || !want && string(got) != body {
			t.Errorf("%q: too large is %v, read %q, %v", body, tooLarge, got, err)
		}
		if unread := sent.Len(); want && unread != max(len(body)-13, 0) { // 4+1 read, 8 dropped
			t.Errorf("%q: %d bytes unread", body, unread)
		}
	}
}

func TestReadParts_CutForm_Error(t *testing.T) {
	const whole = "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\nhello\r\n--x--\r\n"
	for body, want := range map[string]error{whole: nil, whole[:len(whole)-12]: fakeserver.ErrMultipart} {
		var parts []fakeserver.Part
		err := fakeserver.ReadParts(strings.NewReader(body), "x", func(p fakeserver.Part) error {
			parts = append(parts, p)
			return nil
		})
		if !errors.Is(err, want) || want == nil && cmp.Diff([]fakeserver.Part{{"a", "b", []byte("hello")}}, parts) != "" {
			t.Errorf("%q: %v, %v", body, parts, err)
		}
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
}
