package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// Build compiles packages, given by import path, into a new folder. tags are build tags, "" for
// none. Under the race detector the programs have it too.
func Build(tags string, packages ...string) (bin string, err error) {
	if bin, err = os.MkdirTemp("", "arizuko-bin"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", slices.Concat([]string{"build", "-tags", tags, "-o", bin + "/"}, raceFlag, packages)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("go build: %w\n%s", err, out), os.RemoveAll(bin))
	}
	return bin, nil
}

// Programs are programs that a test binary builds once.
type Programs struct {
	build func() (bin string, err error)
}

// NewPrograms describes the programs of a test binary; see Build. Nothing is built yet.
func NewPrograms(tags string, packages ...string) *Programs {
	return &Programs{build: sync.OnceValues(func() (string, error) { return Build(tags, packages...) })}
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
