package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	tourPicture = regexp.MustCompile(`tour/([a-z-]+\.png)`)
	navLink     = regexp.MustCompile(`\{"(/[a-z/]*)", "([^"]+)"\}`)
)

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

func TestTour_Navigation_IsWhole(t *testing.T) {
	t.Parallel()
	tour := read(t, "docs/tour.md")
	links := navLink.FindAllStringSubmatch(read(t, "dashd/internal/pages/view.go"), -1)
	if len(links) < 10 {
		t.Fatalf("links of the navigation: %q", links)
	}
	for _, m := range links {
		if !strings.Contains(tour, "`"+m[1]+"`") {
			t.Errorf("docs/tour.md does not have `%s` (%s)", m[1], m[2])
		}
	}
	for _, page := range []string{"README.md", "docs/README.md"} {
		if !strings.Contains(read(t, page), "tour.md)") {
			t.Errorf("%s does not lead to the tour", page)
		}
	}
}
