package codes

import (
	"regexp"
	"testing"

	"arizuko/gated/internal/rows"
)

func TestNewCode_IsReadableAndNeverTheSame(t *testing.T) {
	t.Parallel()
	form, seen := regexp.MustCompile(`^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$`), map[string]bool{}
	for range 1000 {
		code := New()
		if !form.MatchString(code) || seen[code] {
			t.Fatalf("code %q, seen before: %t", code, seen[code])
		}
		seen[code] = true
	}
}

func TestHash_CaseDashesAndSpacesDoNotMatter(t *testing.T) {
	t.Parallel()
	want := Hash("ABCD-EFGH-2345")
	for text, same := range map[string]bool{
		"abcd-efgh-2345": true, " ABCDEFGH 2345\n": true, "ABCD–EFGH–2345.": true, "`ABCD-EFGH-2345`": true,
		"ABCD-EFGH-2346": false, "ABCD-EFGH": false, "ABCD-EFGH-2345-2": false,
	} {
		if got := Hash(text) == want; got != same {
			t.Errorf("%q: %t", text, got)
		}
	}
	for _, none := range []string{"", " - ", "…", "01"} {
		if got := Hash(none); got != "" {
			t.Errorf("%q has the hash %s", none, got)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	const now, ada = 1_000_000, "telegram:7"
	open := func(expires int64, tries int) *rows.OperatorCode {
		return &rows.OperatorCode{ExpiresAt: expires, Tries: map[string]int{ada: tries, "telegram:8": 9}}
	}
	for name, tt := range map[string]struct {
		code *rows.OperatorCode
		want bool
	}{
		"none": {nil, false}, "open": {open(now+1, 0), true}, "tried twice": {open(now+1, 2), true}, "tried too often": {open(now+1, 3), false},
		"expired": {open(now, 0), false}, "just made": {open(now+Life.Milliseconds(), 0), true},
		"made before the clock was set back": {open(now+Life.Milliseconds()+1, 0), false},
	} {
		if got := Counts(tt.code, ada, now); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
