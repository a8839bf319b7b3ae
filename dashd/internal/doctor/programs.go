package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"arizuko/dashd/internal/checks"
	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
	"arizuko/pkg/msg"
)

// maxCheckLines bounds how many errors of a check are reported.
const maxCheckLines = 10

// check is the result of `NAME check`.
type check struct {
	name string
	checks.Result
}

// startChecks runs the checks of the programs beside this one, at the same time. The function that it
// returns waits for them.
func startChecks(ctx context.Context, e *examination) (wait func() []check) {
	var group sync.WaitGroup
	var missing []string
	names := slices.DeleteFunc(append(daemon.Core(), e.env.configured()...),
		func(name string) bool { return name == "dashd" })
	results := make([]check, len(names))
	for i, name := range names {
		program, _ := msg.SplitAccount(name)
		path := filepath.Join(e.Bin, program)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			missing = append(missing, name)
			continue
		}
		e.checked[name] = true
		group.Go(func() { results[i] = check{name, checks.Run(ctx, path, e.env.of(name, e.Environ))} })
	}
	if len(missing) > 0 {
		e.looked(fmt.Sprintf("not beside dashd, so their own checks did not run: %s. "+
			"Run `NAME check` where each runs, as in `docker compose exec gated gated check`",
			strings.Join(missing, ", ")))
	}
	return func() []check {
		group.Wait()
		return slices.DeleteFunc(results, func(c check) bool { return c.name == "" })
	}
}

// reportPrograms reports the results of the checks.
func reportPrograms(e *examination, all []check) {
	for _, c := range all {
		reportWarnings(e, c)
		switch {
		case c.Problem != "":
			e.Problem("check-failed", facts.CheckCommand(c.name)+" failed: "+c.Problem,
				"run it by hand: what it waits for may hang")
		case c.Code != 0:
			reportErrors(e, c)
		}
	}
}

// reportWarnings reports the warnings of a check. routd's are about routes, which come from the rows.
func reportWarnings(e *examination, c check) {
	for line := range strings.Lines(c.Out) {
		line = strings.TrimSpace(line)
		text, is := strings.CutPrefix(line, "warning: ")
		switch {
		case !is && !strings.HasPrefix(line, "agents run without"), c.name == "routd", e.knows(text):
		case strings.HasPrefix(text, "strangers can reach"):
			reached, fix, _ := strings.Cut(text, "; ") // as facts.Unconfined
			e.Problem("unconfined", reached, fix)
		case is && strings.HasPrefix(text, "the agent of group "):
			e.Problem("group-agent", text, "correct agent.command or agent.image in the group's config, "+
				"or install the program")
		case is:
			e.Warn("check", c.name+": "+text, facts.CheckCommand(c.name)+" and its README say more")
		default:
			e.Warn("limits", line, "`gated check` and gated's README, Runtimes, say what it needs")
		}
	}
}

func reportErrors(e *examination, c check) {
	n := 0
	for line := range strings.Lines(c.Errors) {
		line = strings.TrimPrefix(strings.TrimSpace(line), c.name+": ")
		ofRoute := c.name == "routd" && strings.HasPrefix(line, "route ")
		if line == "" || ofRoute || e.knows(line) || n == maxCheckLines {
			continue
		}
		n++
		e.Problem("check", c.name+": "+line, "correct that, then run "+facts.CheckCommand(c.name)+
			" until it says ok").Config = c.Code == daemon.ExitRefused
	}
}

// knows reports whether the doctor finds by itself what a line of a check says.
func (e *examination) knows(line string) bool {
	return strings.HasPrefix(line, "OPERATORS") || strings.HasPrefix(line, "TZ=") ||
		e.Has("folder-linked") && strings.Contains(line, " is a symbolic link") ||
		e.Has("secret-missing") && strings.HasPrefix(line, "no secret") ||
		e.schema && (strings.Contains(line, "migrate up") || strings.Contains(line, "database"))
}
