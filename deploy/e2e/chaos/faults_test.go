package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	fp "arizuko/pkg/failpoint"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// spot is a fault without how often the daemon comes there first.
type spot struct {
	daemon string
	point  fp.Point
}

func TestPlanComesToEveryPlaceOncePerRound(t *testing.T) {
	const rounds = 3
	n := everywhere()
	all := plan(rounds*n, seeded(1))
	if len(all) != rounds*n {
		t.Fatalf("%d faults, want %d", len(all), rounds*n)
	}
	for round := range slices.Chunk(all, n) {
		seen := map[spot]bool{}
		for _, f := range round {
			seen[spot{f.daemon, f.point}] = true
			if !slices.Contains(pathPoints[f.daemon], f.point) {
				t.Errorf("%s never comes to %s", f.daemon, f.point)
			}
			if f.nth < 1 || f.nth > nthMost {
				t.Errorf("%s dies at %s, which is out of bounds", f.daemon, f)
			}
		}
		if len(seen) != n {
			t.Errorf("a round comes to %d places of %d", len(seen), n)
		}
	}
	if slices.Equal(all[:n], all[n:2*n]) {
		t.Error("rounds are alike")
	}
}

func TestPlanIsCutToItsLength(t *testing.T) {
	for _, n := range []int{0, 1, 7, everywhere() + 1} {
		if got := len(plan(n, seeded(1))); got != n {
			t.Errorf("%d faults, want %d", got, n)
		}
	}
	if !slices.Equal(plan(200, seeded(1))[:50], plan(50, seeded(1))) {
		t.Error("a longer plan begins otherwise")
	}
}

func TestTheSeedMakesThePlan(t *testing.T) {
	n := 2 * everywhere()
	if !slices.Equal(plan(n, seeded(1)), plan(n, seeded(1))) {
		t.Error("one seed makes two plans")
	}
	if slices.Equal(plan(n, seeded(1)), plan(n, seeded(2))) {
		t.Error("two seeds make one plan")
	}
}

func TestEveryPointIsOnSomePath(t *testing.T) {
	on := map[fp.Point]bool{}
	for daemon, points := range pathPoints {
		if !slices.Contains(daemons, daemon) {
			t.Errorf("%s is not started", daemon)
		}
		for i, p := range points {
			if slices.Contains(points[:i], p) {
				t.Errorf("%s comes to %s twice", daemon, p)
			}
			if !fp.Known(p) {
				t.Errorf("nothing is called %s", p)
			}
			on[p] = true
		}
	}
	for _, p := range fp.All() {
		if !on[p] {
			t.Errorf("no daemon dies at %s", p)
		}
	}
}

func TestAFaultIsWrittenAsItsProgramsReadIt(t *testing.T) {
	if got := (fault{"gated", fp.Decide.Before(), 3}).String(); got != "decide.before:3" {
		t.Errorf("it is written %s", got)
	}
}
