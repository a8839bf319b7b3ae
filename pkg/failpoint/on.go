//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Enabled reports whether this program was built to crash at points.
const Enabled = true

// target is the value of FAILPOINT: the point, and how many more times it is reached until the kill.
type target struct {
	point Point
	left  atomic.Int64
}

// chosen reads FAILPOINT once. An unknown point or an invalid number ends the program with an
// error: a test that waits for a crash that cannot happen proves nothing.
var chosen = sync.OnceValue(func() *target {
	name, times, counted := strings.Cut(os.Getenv("FAILPOINT"), ":")
	n := int64(1)
	var err error
	if counted {
		n, err = strconv.ParseInt(times, 10, 64)
	}
	if name != "" && !Known(Point(name)) || err != nil || n < 1 {
		fmt.Fprintf(os.Stderr, "FAILPOINT=%s:%s is not <point>[:n]; points are %v\n", name, times, All())
		os.Exit(78)
	}
	f := &target{point: Point(name)}
	f.left.Store(n)
	return f
})

// traceFile is the file that FAILPOINT_TRACE names, nil for none, and statementFile that of FAILPOINT_STATEMENTS.
var (
	traceFile     = fileOf("FAILPOINT_TRACE")
	statementFile = fileOf("FAILPOINT_STATEMENTS")
)

func fileOf(variable string) func() *os.File {
	return sync.OnceValue(func() *os.File {
		name := os.Getenv(variable)
		if name == "" {
			return nil
		}
		file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", variable, err)
			os.Exit(78)
		}
		return file
	})
}

// Statement appends the program and a statement that it runs, in one line, to the file that FAILPOINT_STATEMENTS names.
func Statement(query string) {
	if file := statementFile(); file != nil {
		line := filepath.Base(os.Args[0]) + " " + strings.Join(strings.Fields(query), " ") + "\n"
		_, _ = file.WriteString(line) // without a line a test counts one statement less
	}
}

// At kills the program if FAILPOINT names the point. It appends the time in Unix nanoseconds and the point to the
// file that FAILPOINT_TRACE names.
func At(p Point) {
	if file := traceFile(); file != nil {
		_, _ = fmt.Fprintf(file, "%d %s\n", time.Now().UnixNano(), p) // without a line one measurement is incomplete
	}
	if f := chosen(); f.point != p || f.left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // the signal takes a moment; nothing more must happen until then
}

var clockFile = sync.OnceValue(func() string { return os.Getenv("FAILPOINT_CLOCK") })

// Now is the time, ahead by the seconds in the file that FAILPOINT_CLOCK names.
func Now() time.Time {
	now := time.Now()
	if clockFile() == "" {
		return now
	}
	text, err := os.ReadFile(clockFile())
	ahead, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bad != nil {
		return now // it is being written
	}
	// As when an operator sets the clock, the monotonic reading must not change, and Time.Add would
	// change it. The wall clock's seconds are the bits from 30 on of the first field; a test checks
	// that this stays so.
	(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&now)).wall += uint64(ahead) << 30
	return now
}
