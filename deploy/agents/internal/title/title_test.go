package title

import "testing"

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
