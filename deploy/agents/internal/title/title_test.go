package title

import (
	"encoding/json"
	"testing"
)

func TestInput(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":"ls -l","description":"List"}`: "ls -l",
		`{"command":["bash","-lc","ls"]}`:          "bash -lc ls",
		`{"file_path": "a b", "limit": 5}`:         `{"file_path":"a b","limit":5}`,
		`{"command":7}`:                            `{"command":7}`,
		`"text"`:                                   `"text"`,
		`{}`:                                       "",
		`null`:                                     "",
		``:                                         "",
		`{"broken`:                                 "",
	} {
		if got := Input(json.RawMessage(args)); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestWithoutKeys(t *testing.T) {
	for text, want := range map[string]string{
		"Fetch https://user:pass@example.com/page?key=pass#x now, and ws://h?k": "Fetch https://example.com/page now, and ws://h",
		"Read http://example.com/a/b":                                           "Read http://example.com/a/b",
		"Read what?.md @home":                                                   "Read what?.md @home",
		"Read http://h/x@y?z":                                                   "Read http://h/x@y",
	} {
		if got := WithoutKeys(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
