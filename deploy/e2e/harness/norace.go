//go:build !race

package harness

const race = false

const raceFactor = 1
