package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
)

// systemctl finds a command for a unit, and its name.
var systemctl = regexp.MustCompile(`systemctl (?:start|stop|restart|enable|disable|status|show)(?: --now)? ([^\s` + "`" + `"|;,)]+)`)

func TestSystemctl_EachUnit_IsAFileOfSystemd(t *testing.T) {
	t.Parallel()
	var units []string
	entries, err := os.ReadDir(at(t, "deploy/systemd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		units = append(units, entry.Name())
	}
	found := map[string]bool{}
	for _, dir := range append(daemon.Suite(), "deploy", "docs") {
		walk(t, dir, func(path string) {
			for _, m := range systemctl.FindAllStringSubmatch(read(t, path), -1) {
				found[path] = true
				if file := unitFile(t, m[1]); !slices.Contains(units, file) {
					t.Errorf("%s: `%s`: there is no deploy/systemd/%s", path, m[0], file)
				}
			}
		}, ".go", ".md", ".service", ".timer", ".target", ".conf")
	}
	for _, path := range []string{"dashd/internal/doctor/daemons.go", "dashd/internal/doctor/daemons_test.go", "deploy/README.md", "docs/operations.md"} {
		if !found[path] {
			t.Errorf("%s names no unit", path)
		}
	}
}

// unitFile is the file of a unit: arizuko@teled is one of arizuko@.service, if teled is a program, and so is
// arizuko@teled-work, which has a drop-in with the program.
func unitFile(t *testing.T, unit string) string {
	if name, instance, is := strings.Cut(unit, "@"); is {
		program, _, _ := strings.Cut(instance, ".")
		if _, err := os.Stat(at(t, "deploy/systemd/"+name+"@"+program+".service.d/account.conf")); err == nil {
			program, _, _ = strings.Cut(program, "-")
		}
		if _, err := os.Stat(at(t, program+"/main.go")); err != nil && program != "%[1]s" { // the code fills it in
			t.Errorf("%s: there is no daemon %s", unit, program)
		}
		return name + "@.service"
	}
	if !strings.Contains(unit, ".") {
		return unit + ".service"
	}
	return unit
}
