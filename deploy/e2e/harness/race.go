//go:build race

package harness

// race builds daemons with the race detector where the tests have it. A daemon that raced
// exits with 66, which fails the test that stops it.
const race = true

// raceFactor is how much longer tests wait for daemons that the detector slows down.
const raceFactor = 3
