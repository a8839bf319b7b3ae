// Package fakeservertest has helpers for tests of fakes: a served fake, and the comparison of answers by
// the fields that matter.
package fakeservertest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// timeout is how long a test waits for an event on a busy machine.
const timeout = 30 * time.Second

// Server is a fake.
type Server interface {
	Start(addr string) (base string, err error)
	Close() error
}

// Serve starts a fake until the test ends. The client has its own connections; ctx ends when the
// test takes too long.
func Serve(t *testing.T, s Server) (base string, client *http.Client, ctx context.Context) {
	t.Helper()
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	client = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		cancel()
		client.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return base, client, ctx
}

// Answer is the answer of a fake. Status 0 is a broken connection, with the error as Body.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request. The test fails if the context of the request ends, or the body breaks off.
func Do(t testing.TB, client *http.Client, req *http.Request) Answer {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		if req.Context().Err() != nil {
			t.Fatal(err)
		}
		return Answer{Body: err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{resp.StatusCode, resp.Header, string(body)}
}

// Subset fails the test unless got has every field of want, which is JSON, with an equal value. A
// null in want is a field that is null or missing.
func Subset(t testing.TB, got map[string]any, want string) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(want), &fields); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	within(t, "", got, fields)
}

func within(t testing.TB, path string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for name, v := range want {
			within(t, path+"."+name, fields[name], v)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) || got == nil {
			t.Errorf("%s is %v, want %v", path, got, want)
			return
		}
		for i, v := range want {
			within(t, path+"["+strconv.Itoa(i)+"]", list[i], v)
		}
	default:
		if got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}
