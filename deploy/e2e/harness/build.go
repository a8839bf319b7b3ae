package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Build compiles packages, given by import path, into a new folder. tags are build tags, "" for
// none. Under the race detector the daemons have it too.
func Build(tags string, packages ...string) (bin string, err error) {
	return build(tags, raceFlag, packages)
}

func build(tags string, daemonFlags, packages []string) (bin string, err error) {
	if bin, err = os.MkdirTemp("", "arizuko-bin"); err != nil {
		return "", err
	}
	agents, daemons := partition(packages, func(pkg string) bool {
		return strings.HasPrefix(pkg, agentPackages) || strings.HasPrefix(pkg, testAgentPackages)
	})
	err = errors.Join(compile(bin, tags, daemonFlags, daemons), compile(bin, tags, nil, agents))
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(bin))
	}
	return bin, nil
}

// These are programs without the race detector: scenarios start hundreds of agents, and the detector
// makes each start slow.
const (
	agentPackages     = "arizuko/deploy/agents/"
	testAgentPackages = "arizuko/deploy/e2e/agents/"
)

func compile(bin, tags string, flags, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	cmd := exec.Command("go", slices.Concat([]string{"build", "-tags", tags, "-o", bin + "/"}, flags, packages)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// partition splits a list into what holds and what does not.
func partition(list []string, holds func(string) bool) (yes, no []string) {
	for _, s := range list {
		if holds(s) {
			yes = append(yes, s)
		} else {
			no = append(no, s)
		}
	}
	return yes, no
}

// Programs are programs that a test binary builds once.
type Programs struct {
	build func() (bin string, err error)
}

// NewPrograms describes the programs of a test binary; see Build. Nothing is built yet.
func NewPrograms(tags string, packages ...string) *Programs {
	return &Programs{build: sync.OnceValues(func() (string, error) { return Build(tags, packages...) })}
}

// NewProgramsWith describes programs that go builds with further flags.
func NewProgramsWith(flags []string, packages ...string) *Programs {
	return &Programs{build: sync.OnceValues(func() (string, error) {
		return build("", slices.Concat(raceFlag, flags), packages)
	})}
}

// WithoutRace are programs without the race detector, which takes several times their memory. The
// caller removes the folder.
func WithoutRace(packages ...string) *Programs {
	return &Programs{build: sync.OnceValues(func() (string, error) { return build("", nil, packages) })}
}

// Bin is the folder of the built programs.
func (p *Programs) Bin() (string, error) { return p.build() }

// RunTests builds the programs, runs all tests of m and removes the programs. parallel is how many
// instances run at once: each mostly waits, but a small machine carries all their processes. With
// -short it runs none. It returns the exit code.
func (p *Programs) RunTests(m *testing.M, parallel string) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if testing.Short() {
		fmt.Println("no tests of whole instances with -short")
		return 0
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin, err := p.Bin()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := os.RemoveAll(bin); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}
