package docs

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"arizuko/pkg/testkit/need"
)

// inExpression finds the metrics in an expression of Prometheus.
var inExpression = regexp.MustCompile(`\b(?:arizuko|process|go)_[a-z_]+|\bup\b`)

// checkExpression reports metrics that no daemon has.
func checkExpression(t *testing.T, known map[string]string, where, expression string) {
	t.Helper()
	names := inExpression.FindAllString(expression, -1)
	if len(names) == 0 {
		t.Errorf("%s: no metric in %q", where, expression)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "arizuko_") {
			continue
		}
		base := name
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if known[strings.TrimSuffix(name, suffix)] == "histogram" {
				base = strings.TrimSuffix(name, suffix)
			}
		}
		if _, ok := known[base]; !ok {
			t.Errorf("%s: no daemon has %s", where, name)
		}
	}
}

// dashboard holds the parts of Grafana's file that are checked.
type dashboard struct {
	Panels []struct {
		Type        string
		Title       string
		FieldConfig struct{ Defaults struct{ Unit string } }
		Targets     []struct{ Expr string }
	}
}

func TestDashboard_Panels_HaveTitleUnitAndKnownMetrics(t *testing.T) {
	t.Parallel()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "deploy/monitoring/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	known, titles, shown := metrics(t), map[string]bool{}, ""
	for _, p := range d.Panels {
		if p.Title == "" || titles[p.Title] {
			t.Errorf("a panel without a title of its own: %q", p.Title)
		}
		titles[p.Title] = true
		if p.Type == "row" {
			continue
		}
		if p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q has no unit or shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			checkExpression(t, known, "panel "+p.Title, target.Expr)
			shown += target.Expr + "\n"
		}
	}
	for name := range known {
		if !strings.Contains(shown, name) && name != "arizuko_disk_size_bytes" && name != "arizuko_daemon_start_time_seconds" && name != "arizuko_onboarding_oldest_seconds" {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// alert is one rule, in the order in which the file writes its fields.
var alert = regexp.MustCompile(`(?m)^      - alert: (\w+)
        expr: '(.*)'
        for: \d+[sm]
        labels: \{severity: (?:critical|warning|info)\}
        annotations:
          summary: "((?:[^"\\]|\\.)+)"
          runbook: (\S+)$`)

func TestAlerts_EachRule_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	rules, tests := read(t, "deploy/monitoring/alerts.yml"), read(t, "deploy/monitoring/alerts_test.yml")
	known := metrics(t)
	found := alert.FindAllStringSubmatch(rules, -1)
	if n := strings.Count(rules, "- alert:"); n != len(found) || n < 20 {
		t.Errorf("%d of %d rules have an expression, for, severity, summary and runbook", len(found), n)
	}
	for _, m := range found {
		name, runbook := m[1], m[4]
		checkExpression(t, known, name, m[2])
		page, section, _ := strings.Cut(runbook, "#")
		if page != "docs/operations.md" || !anchors(read(t, page))[section] {
			t.Errorf("%s: no section %s", name, runbook)
		}
		for _, what := range []string{" fires", " is quiet"} {
			if !strings.Contains(tests, "name: "+name+what+"\n") {
				t.Errorf("alerts_test.yml does not test that %s%s", name, what)
			}
		}
	}
}

// ArizukoDown fires for each target that does not answer.
func TestPrometheusCompose_Targets_AreTheServicesThatAlwaysRun(t *testing.T) {
	t.Parallel()
	var project struct {
		Services map[string]struct {
			Profiles []string
			Restart  string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &project); err != nil {
		t.Fatal(err)
	}
	scraped, commented := read(t, "deploy/monitoring/prometheus-compose.yml"), 0
	for name, service := range project.Services {
		if service.Restart == "no" { // it ends
			continue
		}
		comment := ""
		if len(service.Profiles) > 0 {
			comment = "# "
			commented++
		}
		if line := "\n      " + comment + "- {targets: ['" + name + ":"; !strings.Contains(scraped, line) {
			t.Errorf("prometheus-compose.yml has no line%s", line)
		}
	}
	if commented != 3 {
		t.Errorf("%d services have a profile, want the adapters", commented)
	}
}

func TestAlerts_Promtool_AcceptsRulesAndTheirTests(t *testing.T) {
	t.Parallel()
	need.Verify(t)
	need.Program(t, "promtool", "prometheus")
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml", "prometheus-compose.yml"}, {"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"},
	} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = at(t, "deploy/monitoring")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
