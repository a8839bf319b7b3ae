//go:build !race

package harness

var raceFlag []string

const raceFactor = 1
