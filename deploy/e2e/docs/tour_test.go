package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var tourPicture = regexp.MustCompile(`tour/([a-z-]+\.png)`)

// The pictures themselves are made and compared with the text by the tests of deploy/e2e/tour.
func TestTour_Pictures_AreUsedAndThere(t *testing.T) {
	t.Parallel()
	var shown, stored []string
	for _, m := range tourPicture.FindAllStringSubmatch(read(t, "docs/tour.md"), -1) {
		shown = append(shown, m[1])
	}
	files, err := os.ReadDir(at(t, "docs/tour"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		stored = append(stored, file.Name())
	}
	slices.Sort(shown)
	if len(shown) == 0 || !slices.Equal(shown, stored) {
		t.Errorf("docs/tour.md shows %q, docs/tour has %q", shown, stored)
	}
	for _, name := range shown {
		if desktop, phone := strings.CutSuffix(name, "-phone.png"); phone && !slices.Contains(shown, desktop+".png") {
			t.Errorf("%s has no picture of a desktop", filepath.Join("docs/tour", name))
		}
	}
}
