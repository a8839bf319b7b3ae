package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
)

func TestGlossary_Identifiers_Exist(t *testing.T) {
	t.Parallel()
	all := declarations{}
	for _, row := range rows(section(t, read(t, "docs/glossary.md"), "## Words")) {
		for _, identifier := range codes(row[len(row)-1]) {
			checkIdentifier(t, all, row[0], identifier)
		}
	}
}

// checkIdentifier looks for `package.Name` in the package's folder, wherever that is in the products.
func checkIdentifier(t *testing.T, all declarations, word, identifier string) {
	t.Helper()
	name, member, _ := strings.Cut(identifier, ".")
	folders := []string{"pkg/" + name, packages[name]}
	for _, daemon := range daemon.Suite() {
		rooms, err := filepath.Glob(at(t, daemon+"/internal/*/"+name))
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, daemon+"/internal/"+name)
		for _, folder := range rooms {
			room := filepath.Base(filepath.Dir(folder))
			folders = append(folders, daemon+"/internal/"+room+"/"+name)
		}
	}
	for _, folder := range folders {
		if _, err := os.Stat(at(t, folder)); err == nil && all.in(t, folder, ".go")[member] {
			return
		}
	}
	t.Errorf("%s: %s does not exist", word, identifier)
}
