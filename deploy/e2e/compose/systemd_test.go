package compose

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/testkit/executable"
	"arizuko/pkg/testkit/need"
)

// units copies deploy/systemd with a program of this machine in place of those in /opt.
func units(t *testing.T) (dir string) {
	t.Helper()
	dir, from := t.TempDir(), repository(t)+"/deploy/systemd"
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	services, err := filepath.Glob(dir + "/*.service")
	if err != nil || len(services) == 0 {
		t.Fatal(services, err)
	}
	services = append(services, dir+"/arizuko@teled-work.service.d/account.conf")
	for _, path := range services {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content = regexp.MustCompile(`/opt/arizuko/bin/\S+`).ReplaceAll(content, []byte("/bin/true"))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func analyze(dir string, args ...string) (string, error) {
	cmd := exec.Command("systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// unitNames are all units in a folder, with the template once for each daemon.
func unitNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() && !strings.Contains(entry.Name(), "@.") {
			names = append(names, entry.Name())
		}
	}
	for _, daemon := range append(slices.Clone(daemons), "teled-work") {
		names = append(names, "arizuko@"+daemon+".service")
	}
	return names
}

func TestSystemd_Units_AreValid(t *testing.T) {
	t.Parallel()
	need.Program(t, "systemd-analyze", "systemd")
	dir := units(t)
	verify := append([]string{"verify", "--man=no"}, unitNames(t, dir)...)
	if out, err := analyze(dir, verify...); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	dropIn := dir + "/arizuko@gated.service.d/broken.conf"
	if err := os.WriteFile(dropIn, []byte("[Service]\nNoSuchSetting=yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := analyze(dir, verify...); !strings.Contains(out, "NoSuchSetting") {
		t.Errorf("a mistake in the drop-in of gated is not found: %q", out)
	}
}

// merged are a unit's settings, those of its drop-in last.
func merged(t *testing.T, files ...string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, file := range files {
		for line := range strings.Lines(readFile(t, "deploy/systemd/"+file)) {
			name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if ok && !strings.HasPrefix(name, "#") {
				all[name] = append(all[name], value)
			}
		}
	}
	return all
}

func TestSystemd_Daemons_RestartAndAreConfined(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{
		"a daemon": {"arizuko@.service"}, "gated": {"arizuko@.service", "arizuko@gated.service.d/agents.conf"},
	} {
		s := merged(t, files...)
		for setting, want := range map[string]string{
			"Restart": "on-failure", "RestartPreventExitStatus": "78", "StartLimitIntervalSec": "0", "TimeoutStopSec": "15",
			"User": "arizuko", "StateDirectory": "arizuko", "StateDirectoryMode": "0700", "UMask": "0077", "Environment": "ARIZUKO_DATA=" + dataPath,
			"NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "CapabilityBoundingSet": "", "PrivateTmp": "yes",
		} {
			if got := s[setting]; len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s=%q, want %q", name, setting, got, want)
			}
		}
		if !slices.Contains(strings.Fields(s["After"][0]), "arizuko-migrate.service") {
			t.Errorf("%s does not start after the migration", name)
		}
	}
	gated := merged(t, "arizuko@gated.service.d/agents.conf")
	if !slices.Equal(gated["Delegate"], []string{"yes"}) || !slices.Equal(gated["KillMode"], []string{"mixed"}) || gated["SupplementaryGroups"] != nil {
		t.Errorf("gated: %q", gated)
	}
}

func TestSystemd_Target_WantsWhatNeedsNoToken(t *testing.T) {
	t.Parallel()
	want := []string{"arizuko-migrate.service"}
	for _, name := range daemon.Core() {
		want = append(want, "arizuko@"+name+".service")
	}
	got := strings.Fields(merged(t, "arizuko.target")["Wants"][0])
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the target wants %q, want %q", got, want)
	}
}

// A second account is a unit of its own, with the program of the first.
func TestSystemd_Account_RunsTheProgramOfItsPlatform(t *testing.T) {
	t.Parallel()
	starts := merged(t, "arizuko@.service", "arizuko@teled-work.service.d/account.conf")["ExecStart"]
	if want := []string{"/opt/arizuko/bin/%i", "", "/opt/arizuko/bin/teled"}; !slices.Equal(starts, want) {
		t.Errorf("ExecStart %q, want %q", starts, want)
	}
}

// backupScript is the script of the unit, with a fake of dashd and a folder of the test.
func backupScript(t *testing.T, dashd string) (run func() (code int), folder string) {
	t.Helper()
	dir := t.TempDir()
	folder = dir + "/backups"
	fake := dir + "/dashd"
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	executable.Script(t, fake, dashd)
	_, script, ok := strings.Cut(readFile(t, "deploy/systemd/arizuko-backup.service"), "\nExecStart=/bin/sh -ec '")
	script, _, closed := strings.Cut(script, "'\n")
	if !ok || !closed {
		t.Fatal("the unit runs no script")
	}
	script = strings.NewReplacer("\\\n", "", "$$", "$", "%%", "%", "/opt/arizuko/bin/dashd", fake, "/var/lib/arizuko-backup", folder).Replace(script)
	return func() int {
		cmd := exec.Command("/bin/sh", "-ec", script)
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		t.Logf("%s", out)
		return cmd.ProcessState.ExitCode()
	}, folder
}

func TestSystemd_Backup_DeletesOldOnesOnlyBesideACheckedOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dashd string
		code  int
		kept  bool // the old backup
	}{
		"complete":           {`[ "$2" = --verify ] || touch "$2"`, 0, false},
		"without some files": {`[ "$2" = --verify ] && exit 0; touch "$2"; exit 1`, 1, false},
		"not written":        {`exit 75`, 75, true},
		"damaged":            {`[ "$2" = --verify ] && exit 3; touch "$2"`, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, folder := backupScript(t, c.dashd)
			old, month := folder+"/arizuko-20200101T033000.tgz", time.Now().AddDate(0, -1, 0)
			err := errors.Join(os.WriteFile(old, nil, 0o600), os.Chtimes(old, month, month),
				os.Mkdir(folder+"/arizuko-verify-1", 0o700), os.WriteFile(folder+"/arizuko-verify-1/arizuko.db", nil, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			if code := run(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if _, err := os.Stat(old); (err == nil) != c.kept {
				t.Errorf("the old backup: %v", err)
			}
			if _, err := os.Stat(folder + "/arizuko-verify-1"); err == nil {
				t.Error("the copy of a check that was killed is left")
			}
		})
	}
}

// The owner of a state folder becomes that of the unit, so that a backup by root would take the data folder from the daemons.
func TestSystemd_Backup_LeavesTheDataFolderItsOwner(t *testing.T) {
	t.Parallel()
	s := merged(t, "arizuko-backup.service")
	if !slices.Equal(s["StateDirectory"], []string{"arizuko-backup"}) || !slices.Equal(s["ReadWritePaths"], []string{dataPath}) {
		t.Errorf("StateDirectory=%q ReadWritePaths=%q", s["StateDirectory"], s["ReadWritePaths"])
	}
}
