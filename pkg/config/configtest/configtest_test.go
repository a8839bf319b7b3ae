package configtest

import "testing"

func TestReplaceTable(t *testing.T) {
	const readme = "# x\n<!-- config:start -->\nold\n<!-- config:end -->\ntail\n"
	want := "# x\n<!-- config:start -->\n\n| new |\n\n<!-- config:end -->\ntail\n"
	got, ok := replaceTable(readme, "| new |\n")
	if !ok || got != want {
		t.Errorf("got %q, %v", got, ok)
	}
	again, _ := replaceTable(got, "| new |\n")
	if again != want {
		t.Errorf("the second replacement gave %q", again)
	}
	for _, bad := range []string{"", "<!-- config:start -->", "<!-- config:end --> <!-- config:start -->"} {
		if _, ok := replaceTable(bad, "| new |\n"); ok {
			t.Errorf("replaced a table in %q", bad)
		}
	}
}
