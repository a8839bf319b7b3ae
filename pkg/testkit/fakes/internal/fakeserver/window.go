package fakeserver

import (
	"slices"
	"time"
)

// Window is when calls were made, oldest first, to limit their rate.
type Window []time.Time

// Wait is how long no more calls are allowed, if at most limit are allowed in a duration; zero or
// less if one is allowed now.
func (w Window) Wait(limit int, in time.Duration, now time.Time) time.Duration {
	if len(w) < limit {
		return 0
	}
	return w[len(w)-limit].Add(in).Sub(now)
}

// Since are the calls that were made less than a duration ago. It reuses the memory of w.
func (w Window) Since(ago time.Duration, now time.Time) Window {
	recent := slices.IndexFunc(w, func(at time.Time) bool { return now.Sub(at) < ago })
	if recent < 0 {
		return w[:0]
	}
	return slices.Delete(w, 0, recent)
}

// Seconds rounds a wait up to whole seconds; 0 for none.
func Seconds(wait time.Duration) int {
	return int((max(wait, 0) + time.Second - 1) / time.Second)
}
