//go:build !race

package harness

var raceFlag []string

const raceFactor = 1

// MemoryFactor is how much more memory daemons with the race detector may take.
const MemoryFactor = 1
