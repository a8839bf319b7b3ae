package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each daemon is a folder at the top whose program has its name.
func TestSuite_NamesThePrograms(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("../../*d/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, program := range programs {
		found = append(found, filepath.Base(filepath.Dir(program)))
	}
	want := slices.Sorted(slices.Values(Suite()))
	if !slices.Equal(found, want) {
		t.Errorf("programs %q, Suite is %q", found, want)
	}
}

func TestAdapters_TokenIsAVariableOfTheirs(t *testing.T) {
	t.Parallel()
	for _, a := range Adapters() {
		source, err := os.ReadFile("../../" + a.Name + "/config.go")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), `env:"`+a.Token+`"`) || TokenVariable(a.Name) != a.Token {
			t.Errorf("%s has no variable %s", a.Name, a.Token)
		}
	}
	if got := TokenVariable("gated"); got != "" {
		t.Errorf("gated has the token %s", got)
	}
}
