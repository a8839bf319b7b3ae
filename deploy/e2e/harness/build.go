package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"arizuko/pkg/testkit/gobuild"
)

// Build compiles packages, given by import path, into a new folder. tags are build tags, "" for
// none. Under the race detector the daemons have it too.
func Build(tags string, packages ...string) (bin string, err error) {
	return build(gobuild.Options{Tags: tags, Race: race}, packages)
}

func build(o gobuild.Options, packages []string) (bin string, err error) {
	if bin, err = os.MkdirTemp("", "arizuko-bin"); err != nil {
		return "", err
	}
	agents, daemons := partition(packages, func(pkg string) bool {
		return strings.HasPrefix(pkg, agentPackages) || strings.HasPrefix(pkg, testAgentPackages)
	})
	if err = gobuild.Programs(bin, o, daemons...); err == nil {
		o.Race = false
		err = gobuild.Programs(bin, o, agents...)
	}
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

// partition splits a list by a predicate.
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

// NewProgramsWith describes programs in which other files take the place of some of the source; overlay is the JSON
// file that go build takes by that name.
func NewProgramsWith(overlay string, packages ...string) *Programs {
	return &Programs{build: sync.OnceValues(func() (string, error) {
		return build(gobuild.Options{Race: race, Overlay: overlay}, packages)
	})}
}

// WithoutRace are programs without the race detector, which takes several times their memory. The
// caller removes the folder.
func WithoutRace(packages ...string) *Programs {
	return &Programs{build: sync.OnceValues(func() (string, error) { return build(gobuild.Options{}, packages) })}
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
