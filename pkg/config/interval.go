package config

import (
	"fmt"
	"time"
)

// minInterval keeps a typo such as 2ns from using up a core.
const minInterval = 10 * time.Millisecond

// CheckInterval returns an error that names the variable if its interval is below 10 ms.
func CheckInterval(name string, interval time.Duration) error {
	if interval < minInterval {
		return fmt.Errorf("%s: must be at least %s", name, minInterval)
	}
	return nil
}
