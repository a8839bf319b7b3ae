package docs

import (
	"regexp"
	"strings"
	"testing"
)

var (
	variable = regexp.MustCompile(`^([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=.*)?$`)
	shouted  = regexp.MustCompile(`[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+`)
)

// A variable that a page names is in the source of a program, or of a library that ours are made of.
func TestPages_EnvironmentVariables_Exist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"ANTHROPIC_API_KEY": true, "OPENAI_API_KEY": true} // read by Claude Code, and by Codex and OpenCode
	walk(t, ".", func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, name := range shouted.FindAllString(read(t, path), -1) {
			known[name], known[name+"_FILE"] = true, true
		}
	}, ".go", "docker-compose.yml", "deploy/docker/dist.sh")
	walk(t, ".", func(page string) {
		for _, code := range codes(read(t, page)) {
			if m := variable.FindStringSubmatch(code); m != nil && !known[m[1]] {
				t.Errorf("%s names %s, which no program reads", page, m[1])
			}
		}
	}, ".md")
}
