//go:build !failpoints

package failpoint

import "time"

// Enabled reports whether this program was built to crash at points.
const Enabled = false

// At kills a program built with the tag failpoints, if FAILPOINT names the point.
func At(Point) {}

// Statement notes a statement in a program built with the tag failpoints.
func Statement(string) {}

// Now is the time.
func Now() time.Time { return time.Now() }
