package enter

import (
	"path/filepath"
	"testing"

	"arizuko/pkg/testkit/need"
)

func TestAddAccount(t *testing.T) {
	for name, tt := range map[string]struct {
		table, want string
	}{
		"new":            {"root:x:0:0::/root:/bin/sh\n", "root:x:0:0::/root:/bin/sh\nagent:x:7:7::/h:/bin/sh\n"},
		"no newline":     {"root:x:0:0::/root:/bin/sh", "root:x:0:0::/root:/bin/sh\nagent:x:7:7::/h:/bin/sh\n"},
		"empty":          {"", "agent:x:7:7::/h:/bin/sh\n"},
		"has it":         {"me:x:7:1::/home/me:/bin/sh\n", ""},
		"the name taken": {"agent:x:1000:1000::/home/agent:/bin/sh\n", "agent:x:1000:1000::/home/agent:/bin/sh\nagent7:x:7:7::/h:/bin/sh\n"},
		"nonsense":       {"+\n\n#x:7\n", "+\n\n#x:7\nagent:x:7:7::/h:/bin/sh\n"},
	} {
		got, added := addAccount(tt.table, 7, "7::/h:/bin/sh")
		if want := tt.want; added != (want != "") || added && got != want || !added && got != tt.table {
			t.Errorf("%s: %q, %v, want %q", name, got, added, want)
		}
	}
}

func TestEnter_UserHasAnAccount(t *testing.T) {
	need.Root(t)
	dir := tree(t, "own/", "own/file")
	o := Order{User: agent(), Reach: true, Dir: filepath.Join(dir, "own")}
	script := "id -un; id -gn; echo ~agent; ls; grep -c ^root: /etc/passwd /etc/group; stat -c %a /etc/passwd"
	want := "agent\nagent\n" + o.Dir + "\nfile\n/etc/passwd:1\n/etc/group:1\n644"
	if out, code := sh(t, o, script); out != want || code != 0 {
		t.Errorf("%q, exit code %d, want %q", out, code, want)
	}
	if out, code := sh(t, o, "echo x >> /etc/passwd || umount /etc/passwd"); code == 0 {
		t.Errorf("the agent changes it: %s", out)
	}
}
