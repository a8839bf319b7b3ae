package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogEnd_LongLog_BeginsWithALine(t *testing.T) {
	c := &site{Config: Config{Data: t.TempDir()}}
	write := func(text string) {
		t.Helper()
		dir := filepath.Join(c.Data, "logs", "acme", "eng")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "run-7.log"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		text, want string
		cut        bool
	}{
		{"", "", false},
		{"one\ntwo\n", "one\ntwo\n", false},
		{strings.Repeat("x", 100) + "\nlast\x1b[31m line\u202e\xff\n", "last[31m line\uFFFD\n", true},
		{strings.Repeat("x", 100), strings.Repeat("x", 40), true}, // one line only
	} {
		write(tt.text)
		got, cut, err := c.logEnd("acme/eng", 7, 40)
		if err != nil || got != tt.want || cut != tt.cut {
			t.Errorf("%.20q: %q, %t, %v", tt.text, got, cut, err)
		}
	}
	if _, _, err := c.logEnd("acme/eng", 8, 40); !os.IsNotExist(err) {
		t.Errorf("no log: %v", err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(c.Data, "logs", "acme", "eng", "run-9.log")); err != nil {
		t.Fatal(err)
	}
	if text, _, err := c.logEnd("acme/eng", 9, 40); err == nil {
		t.Errorf("a link that leads out of the data folder is followed: %q", text)
	}
}
