package secrets

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

func TestStore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := New(data)
	for _, tt := range []struct{ name, value, want string }{
		{"github", "value-1", "want a value of 8 to"},
		{"github", "value-12", ""},
		{"github", "value-123", ""},
		{"github", "two\nlines", "several lines"},
		{"oauth", "{\n\"access_token\": \"a\"\n}", ""},
		{"large", strings.Repeat("x", maxValue+1), "want a value of 8 to"},
		{"../x", "value-12", "name"},
		{"a.command", "value-12", "name"},
	} {
		err := s.Set(tt.name, tt.value)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), tt.value)) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got, err := s.Get(tt.name); tt.want == "" && (got != tt.value || err != nil) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	folder, err1 := os.Stat(filepath.Join(data, Folder))
	file, err2 := os.Stat(filepath.Join(data, Folder, "github"))
	if err := errors.Join(err1, err2); err != nil || folder.Mode().Perm() != 0o700 || file.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, %v", folder, file, err)
	}
	if _, err := s.Get("none"); !errors.Is(err, ErrNone) {
		t.Errorf("none: %v", err)
	}
	other := filepath.Join(data, "other")
	if err := errors.Join(os.WriteFile(other, []byte("of another file"), 0o600), os.Symlink(other, filepath.Join(data, Folder, "link")),
		os.Symlink("github", filepath.Join(data, Folder, "inside"))); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"link", "inside"} {
		if got, err := s.Get(link); err == nil {
			t.Errorf("%s: %q", link, got)
		}
	}
	if err := s.Set("link", "value-link"); err != nil { // it takes the link's place
		t.Error(err)
	}
	if content, _ := os.ReadFile(other); string(content) != "of another file" {
		t.Errorf("the link was followed: %s", content)
	}
}

func TestSetCommand(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	count := filepath.Join(t.TempDir(), "count")
	if err := errors.Join(s.Set("cmd", "was a value"), s.SetCommand("cmd", "echo x >>"+count+"; echo from-command")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if got, err := s.Get("cmd"); got != "from-command" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
	if content, _ := os.ReadFile(count); string(content) != "x\n" {
		t.Errorf("it ran %q times", content)
	}
	if _, _, err := s.Hold("cmd"); err == nil {
		t.Error("it is held")
	}
	if err := s.SetCommand("cmd", "echo hidden-output; exit 3"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("cmd"); err == nil || !strings.Contains(err.Error(), "exit status 3") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("it failed with %v", err)
	}
	if err := s.Set("cmd", "a value again"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get("cmd"); got != "a value again" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHold_OneAtATime(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := New(data).Set("n", "value---"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			value, release, err := New(data).Hold("n") // as in processes of their own
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if err := New(data).Set("n", value+"x"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := New(data).Get("n"); got != "value---xxxxx" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	token := Token([]byte("key"), "acme/eng", "github")
	if !regexp.MustCompile(`^azk_[a-z2-7]{52}$`).MatchString(token) || len(token) != TokenLength || token != Token([]byte("key"), "acme/eng", "github") {
		t.Errorf("%s", token)
	}
	for _, other := range []string{Token([]byte("yek"), "acme/eng", "github"), Token([]byte("key"), "acme", "github"), Token([]byte("key"), "acme/eng", "github2")} {
		if other == token {
			t.Errorf("%s twice", token)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, tt := range []struct{ args, in, want string }{
		{"", "", ""},
		{"set github", "s3cret-value\n", "secret github is set\n"},
		{"set --command echo~from-command other", "", "secret other is set\n"},
		{"list", "", "github\nother\n"},
		{"rm other", "", "secret other is removed\n"},
		{"rm other", "", "there is no such secret"},
		{"set", "", "want list, set NAME or rm NAME"},
		{"set x", "short", "want a value of 8 to"},
		{"get github", "", "want list, set NAME or rm NAME"},
	} {
		var args []string
		for _, arg := range strings.Fields(tt.args) {
			args = append(args, strings.ReplaceAll(arg, "~", " "))
		}
		var out bytes.Buffer
		err := Command(func() (string, error) { return data, nil }, strings.NewReader(tt.in))(t.Context(), args, &out)
		if text := out.String(); err == nil && text != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v", tt.args, text, err)
		}
		if strings.Contains(out.String(), "s3cret") {
			t.Errorf("%s prints %s", tt.args, &out)
		}
	}
	if got, err := New(data).Get("github"); got != "s3cret-value" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
