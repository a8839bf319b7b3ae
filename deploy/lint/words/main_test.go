package main

import (
	"slices"
	"testing"
)

func TestParse_List_Compiles(t *testing.T) {
	rules, err := parse(list)
	if err != nil || len(rules) < 20 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
}

func TestParse_BadLine_NamesIt(t *testing.T) {
	for list, want := range map[string]string{
		"\n\\bfoo\\b bar":    "words.txt:2: want a pattern, a tab and what to write instead",
		"(\tbar":             "words.txt:1: error parsing regexp: missing closing ): `(`",
		"foo\tbar\nbaz\t \n": "words.txt:2: want a pattern, a tab and what to write instead",
	} {
		if _, err := parse(list); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}

func TestCheck_Finding_NamesPlaceAndRemedy(t *testing.T) {
	rules, err := parse("# words\n\\bfoo\\b\tbar\n\texcept docs/old\n[.go] x\\w*Most\tmaxX")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, text string
		want       []string
	}{
		{"a.go", "food\na foo foo\nxyMost", []string{`a.go:2: "foo": bar`, `a.go:3: "xyMost": maxX`}},
		{"a.md", "xyMost", nil},
		{"docs/old.md", "foo", nil},
	} {
		if got := check(rules, c.file, []byte(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.file, got, c.want)
		}
	}
}
