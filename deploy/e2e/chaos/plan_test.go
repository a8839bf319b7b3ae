package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	fp "arizuko/pkg/failpoint"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// place is a failpoint of a daemon.
type place struct {
	daemon string
	point  fp.Point
}

func TestPlan_Round_HasEveryFailpointOnce(t *testing.T) {
	const rounds = 3
	n := pointCount()
	all := plan(rounds*n, false, seeded(1))
	if len(all) != rounds*n {
		t.Fatalf("%d crashes, want %d", len(all), rounds*n)
	}
	for round := range slices.Chunk(all, n) {
		seen := map[place]bool{}
		for _, f := range round {
			seen[place{f.daemon, f.point}] = true
			if !slices.Contains(pathPoints[f.daemon], f.point) {
				t.Errorf("%s has no failpoint %s on its path", f.daemon, f.point)
			}
			if f.nth < 1 || f.nth > maxNth {
				t.Errorf("%s at %s: nth is out of range", f.daemon, f)
			}
		}
		if len(seen) != n {
			t.Errorf("a round has %d failpoints of %d", len(seen), n)
		}
	}
	if slices.Equal(all[:n], all[n:2*n]) {
		t.Error("rounds have the same order")
	}
}

func TestPlan_Server_LeavesOutCheckpoints(t *testing.T) {
	for _, c := range plan(2*pointCount(), true, seeded(1)) {
		if c.point == fp.Checkpoint {
			t.Fatalf("%s: a server makes its checkpoints itself", c)
		}
	}
}

func TestPlan_DependsOnSeed(t *testing.T) {
	n := 2 * pointCount()
	if !slices.Equal(plan(n, false, seeded(1)), plan(n, false, seeded(1))) {
		t.Error("the same seed makes different plans")
	}
	if slices.Equal(plan(n, false, seeded(1)), plan(n, false, seeded(2))) {
		t.Error("different seeds make the same plan")
	}
}

// transcriptPoints are on the path of audio files, which the load does not have. TestTranscribe_GatedKilledAtEachStep in
// deploy/e2e/scenarios kills gated at each of them.
var transcriptPoints = append(around(fp.HoldTranscript, fp.EndTranscript), fp.Transcribing, fp.Transcribed)

// receiptPoints are those of the egress proxy, which serves agents in sandboxes alone, and those of the load are in none.
// TestEgress_KilledAtEachStep in deploy/e2e/runtimes kills it at each of them, and TestEgress_KilledAtRandom_UnderLoad
// under a load of requests.
var receiptPoints = around(fp.PutReceipt, fp.EndReceipt)

func TestPathPoints_HaveEveryFailpoint(t *testing.T) {
	on := map[fp.Point]bool{}
	for daemon, points := range pathPoints {
		if !slices.Contains(daemons, daemon) {
			t.Errorf("unknown daemon %s", daemon)
		}
		for i, p := range points {
			if slices.Contains(points[:i], p) {
				t.Errorf("%s has %s twice", daemon, p)
			}
			if !fp.Known(p) {
				t.Errorf("unknown failpoint %s", p)
			}
			on[p] = true
		}
	}
	for _, p := range fp.All() {
		if !on[p] && !slices.Contains(slices.Concat(transcriptPoints, receiptPoints), p) {
			t.Errorf("failpoint %s is on no path", p)
		}
	}
}
