//go:build !failpoints

package failpoint

import "time"

// Enabled says whether this program can be made to die.
const Enabled = false

// At is where a program built for it dies, if it was told to.
func At(Point) {}

// Now is the time.
func Now() time.Time { return time.Now() }
