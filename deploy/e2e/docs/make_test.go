package docs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)
	makeCall   = regexp.MustCompile("(?m)(?:`|^)make ([a-z]+(?:-[a-z]+)*)")
)

func TestPages_MakeTargets_Exist(t *testing.T) {
	t.Parallel()
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	walk(t, ".", func(page string) {
		for _, m := range makeCall.FindAllStringSubmatch(read(t, page), -1) {
			if !targets[m[1]] {
				t.Errorf("%s: make %s does not exist", page, m[1])
			}
		}
	}, ".md")
}

var benchScenario = regexp.MustCompile(`\{"(\w+)", \(\*bench\)`)

func TestPerformance_Scenarios_AreThoseOfTheBenchmark(t *testing.T) {
	t.Parallel()
	var inCode, onPage []string
	for _, m := range benchScenario.FindAllStringSubmatch(read(t, "deploy/e2e/bench/main.go"), -1) {
		inCode = append(inCode, m[1])
	}
	for _, row := range rows(section(t, read(t, "docs/performance.md"), "## What is measured")) {
		onPage = append(onPage, strings.Trim(row[0], "`"))
	}
	if len(inCode) == 0 || !slices.Equal(inCode, onPage) {
		t.Errorf("the page has the scenarios %q, the program %q", onPage, inCode)
	}
}

func TestDependabot_KnowsEveryModule(t *testing.T) {
	t.Parallel()
	updates := read(t, ".github/dependabot.yml")
	walk(t, ".", func(file string) {
		if dir := "/" + strings.TrimPrefix(path.Dir(file), "."); !strings.Contains(updates, `"`+dir+`"`) {
			t.Errorf("dependabot.yml does not have %s", dir)
		}
	}, "go.mod")
}
