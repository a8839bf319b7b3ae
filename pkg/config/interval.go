package config

import (
	"fmt"
	"time"
)

// shortest interval there may be: it keeps a typo such as 2ns from using up a core.
const shortest = 10 * time.Millisecond

// CheckInterval says that the variable of a name holds an interval too short to be meant, nil if
// it does not.
func CheckInterval(name string, interval time.Duration) error {
	if interval < shortest {
		return fmt.Errorf("%s: must be at least %s", name, shortest)
	}
	return nil
}
