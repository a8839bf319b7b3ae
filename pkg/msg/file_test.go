package msg

import (
	"strings"
	"testing"
)

func TestFileName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.txt": "a.txt", "../../etc/passwd": "_.._etc_passwd", "..": "file", "": "file", "a\r\nContent-Type: x": "a__Content-Type: x", "\xff.md": "_.md",
		"a\u202egpj.exe": "a_gpj.exe", "a\x00b": "a_b", strings.Repeat("ü", 100) + ".pdf": strings.Repeat("ü", 58) + ".pdf",
	} {
		if got := FileName(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if got := FileName(strings.Repeat("\xff", 500)); len(got) > maxFileName {
		t.Errorf("%d bytes", len(got))
	}
}
