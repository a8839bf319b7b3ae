// Package golden compares a test's output with a file that holds the expected output.
package golden

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Compare fails the test unless the file at path holds got. With the test flag -update it writes
// the file instead.
func Compare(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: run the test with -update if this is right (-want +got):\n%s", path, diff)
	}
}

// CompareSection is Compare for a section of the file at path: the lines between the comments `<!-- name:start -->` and
// `<!-- name:end -->`.
func CompareSection(t testing.TB, path, name, got string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	right, err := replaceSection(string(content), name, got)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	Compare(t, path, right)
}

// replaceSection returns a file with a section replaced.
func replaceSection(file, name, section string) (string, error) {
	start, end := "<!-- "+name+":start -->", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(file, start)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return "", fmt.Errorf("it has no %s … %s", start, end)
	}
	return before + start + "\n\n" + section + "\n" + end + after, nil
}
