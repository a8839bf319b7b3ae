//go:build race

package harness

// raceFlag builds programs with the race detector where the tests have it. A daemon that raced
// exits with 66, which fails the test that stops it.
var raceFlag = []string{"-race"}
