package match

import (
	"strings"
	"testing"
)

func TestParseTarget_ValidTexts_GiveTargets(t *testing.T) {
	tests := []struct {
		text      string
		want      Target
		canonical string
	}{
		{"acme", Target{Kind: Trigger, Folder: "acme"}, "acme"},
		{"acme/eng/oncall", Target{Kind: Trigger, Folder: "acme/eng/oncall"}, "acme/eng/oncall"},
		{"folder:acme/eng", Target{Kind: Trigger, Folder: "acme/eng"}, "acme/eng"},
		{"acme#trigger", Target{Kind: Trigger, Folder: "acme"}, "acme"},
		{"acme#observe", Target{Kind: Observe, Folder: "acme"}, "acme#observe"},
		{"folder:acme#observe", Target{Kind: Observe, Folder: "acme"}, "acme#observe"},
		{"daemon", Target{Kind: Trigger, Folder: "daemon"}, "daemon"},
		{"daemon:onbod", Target{Kind: Daemon, Name: "onbod"}, "daemon:onbod"},
		{"builtin:ping", Target{Kind: Builtin, Name: "ping"}, "builtin:ping"},
		{"builtin:drop", Target{Kind: Builtin, Name: "drop"}, "builtin:drop"},
	}
	for _, tt := range tests {
		got, err := ParseTarget(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("ParseTarget(%q) = %+v, %v; want %+v", tt.text, got, err, tt.want)
		}
		if got.String() != tt.canonical {
			t.Errorf("ParseTarget(%q).String() = %q, want %q", tt.text, got.String(), tt.canonical)
		}
	}
}

func TestParseTarget_Invalid_Refused(t *testing.T) {
	tests := []struct{ text, reason string }{
		{"", "target is empty"},
		{"folder:", "folder is empty"},
		{"#observe", "folder is empty"},
		{"Acme", `segment "Acme"`},
		{" acme", `segment " acme"`},
		{"../etc", `segment ".."`},
		{"a/b/c/d/e/f/g/h/i", "8 segments deep"},
		{"acme#", `unknown fragment ""`},
		{"acme#Observe", `unknown fragment "Observe"`},
		{"acme#obsrve", `unknown fragment "obsrve"`},
		{"acme#observe#trigger", `unknown fragment "observe#trigger"`},
		{"deamon:onbod", `unknown target "deamon:onbod"`},
		{"Daemon:onbod", `unknown target "Daemon:onbod"`},
		{":acme", `unknown target ":acme"`},
		{"http://example.com", `unknown target "http://example.com"`},
		{"folder:folder:acme", `segment "folder:acme"`},
		{"daemon:", `daemon ""`},
		{"daemon:a/b", `daemon "a/b"`},
		{"daemon:onbod#observe", `daemon "onbod#observe"`},
		{"builtin:", `unknown builtin ""`},
		{"builtin:Ping", `unknown builtin "Ping"`},
		{"builtin:drop#observe", `unknown builtin "drop#observe"`},
	}
	for _, tt := range tests {
		got, err := ParseTarget(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("ParseTarget(%q) = %+v, %v; want an error about %s", tt.text, got, err, tt.reason)
		}
	}
}

func TestTargetKind_String_NamesKind(t *testing.T) {
	for kind, want := range map[TargetKind]string{
		Trigger: "trigger", Observe: "observe", Daemon: "daemon", Builtin: "builtin",
	} {
		if got := kind.String(); got != want {
			t.Errorf("TargetKind(%d).String() = %q, want %q", int(kind), got, want)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"", "acme", "folder:a/b#observe", "daemon:x", "builtin:drop", "#", ":"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			return
		}
		again, err := ParseTarget(target.String())
		if err != nil || again != target {
			t.Errorf("%q is %+v, but its String %q is %+v, %v", text, target, target.String(), again, err)
		}
	})
}
