package redecided

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck_Print_HasCountsAndExamples(t *testing.T) {
	t.Parallel()
	c := Check{What: "messages", Same: 3}
	c.Leave("parts of an album")
	c.Leave("parts of an album")
	c.Leave("an \x1b[2J error")
	for range maxExamples + 2 {
		c.Differ("message 1 in telegram:1: was routed (route) to main\nnow dropped")
	}
	var out strings.Builder
	c.Print(&out)
	want := "messages: 3 as stored, 22 different\n" + strings.Repeat("  message 1 in telegram:1: was routed (route) to main?now dropped\n", maxExamples) +
		"  and 2 more\n  not compared: 1, an ?[2J error\n  not compared: 2, parts of an album\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
