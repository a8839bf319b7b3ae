//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Enabled says whether this program can be made to die.
const Enabled = true

// fault is what FAULT says: the point, and how often to pass it unharmed.
type fault struct {
	point Point
	left  atomic.Int64
}

// told reads FAULT once. What is no point, or no number, ends the program with a word about
// it: a test that waits for a death that can't come proves nothing.
var told = sync.OnceValue(func() *fault {
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
	f := &fault{point: Point(name)}
	f.left.Store(n)
	return f
})

// At is where a program built for it dies, if it was told to.
func At(p Point) {
	if f := told(); f.point != p || f.left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // the kill takes a moment; nothing more must happen
}

var clockFile = sync.OnceValue(func() string { return os.Getenv("FAILPOINT_CLOCK") })

// Now is the time, as many seconds ahead as the file says that FAILPOINT_CLOCK names.
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
	// As where a clock is set, what goes by between two times must not change, and Time.Add
	// would change it. The seconds of the wall clock are the bits from 30 on of the first
	// field; a test holds us to that.
	(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&now)).wall += uint64(ahead) << 30
	return now
}
