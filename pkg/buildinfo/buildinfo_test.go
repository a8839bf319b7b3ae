package buildinfo

import (
	"bytes"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

func TestFromSettings(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for name, tc := range map[string]struct {
		settings []debug.BuildSetting
		want     string
	}{
		"built outside a repository": {[]debug.BuildSetting{{Key: "GOOS", Value: "linux"}}, "devel"},
		"a commit":                   {[]debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "false"}}, "0123456789ab"},
		"changed since the commit":   {[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: revision}}, "0123456789ab-dirty"},
		"a short revision":           {[]debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}}, "0123"},
	} {
		if got := fromSettings(tc.settings); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestNamed_CommitsHaveTheNumber_TagsWin(t *testing.T) {
	for stamp, want := range map[string]string{
		"4b93cc67":                  number + " (4b93cc67)",
		"0123456789ab-dirty":        number + " (0123456789ab-dirty)",
		"devel":                     number + " (devel)",
		"v0.1.0":                    "v0.1.0",
		"v1.2.3-rc.1":               "v1.2.3-rc.1",
		"v0.1.0-3-g4b93cc67-dirty":  "v0.1.0-3-g4b93cc67-dirty",
		"what ARIZUKO_VERSION says": "what ARIZUKO_VERSION says",
	} {
		if got := named(stamp); got != want {
			t.Errorf("%s: %q, want %q", stamp, got, want)
		}
	}
}

func TestPrint(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {"version"}, {"--version", "now"}, {"turns", "--version"}} {
		var out bytes.Buffer
		if Print(&out, "gated", args) || out.Len() > 0 {
			t.Errorf("%q printed %q", args, out.String())
		}
	}
	want := "gated " + Version() + "\n"
	for _, arg := range []string{"--version", "-version"} {
		var out bytes.Buffer
		if !Print(&out, "gated", []string{arg}) || out.String() != want {
			t.Errorf("%s printed %q, want %q", arg, out.String(), want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {"help"}, {"codex", "--help"}} {
		var out bytes.Buffer
		if Help(&out, "usage: demo", args) || out.Len() > 0 {
			t.Errorf("%q printed %q", args, out.String())
		}
	}
	for _, arg := range []string{"--help", "-help", "-h"} {
		var out bytes.Buffer
		if !Help(&out, "usage: demo", []string{arg}) || out.String() != "usage: demo\n" {
			t.Errorf("%s printed %q", arg, out.String())
		}
	}
}

// The linker ignores a variable that does not exist.
func TestMakefile_SetsTheVersionOfThisPackage(t *testing.T) {
	content, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "-X arizuko/pkg/buildinfo.version=") {
		t.Error("the Makefile does not set arizuko/pkg/buildinfo.version")
	}
}
