package gobuild_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"arizuko/pkg/testkit/gobuild"
)

// build compiles a module of one program that prints a word, and returns the program's path.
func build(t *testing.T, word string) string {
	t.Helper()
	for name, text := range map[string]string{"go.mod": "module hello\n", "main.go": "package main\n\nfunc main() { print(\"" + word + "\") }\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return gobuild.Program(t, gobuild.Options{Static: true}, "hello")
}

func TestPrograms_TwoFolders_ShareAProgramUntilItsCodeChanges(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Chdir(t.TempDir())

	var files []os.FileInfo
	programs := []string{build(t, "one"), build(t, "one"), build(t, "two")}
	for i, want := range []string{"one", "one", "two"} {
		if out, err := exec.Command(programs[i]).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("program %d prints %q, %v", i, out, err)
		}
		file, err := os.Stat(programs[i])
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if !os.SameFile(files[0], files[1]) || os.SameFile(files[0], files[2]) {
		t.Error("the first two programs are to be one file, the third another")
	}
}
