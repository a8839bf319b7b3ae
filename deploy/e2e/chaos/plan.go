package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	fp "arizuko/pkg/failpoint"
)

// crash is a daemon that kills itself when it reaches a failpoint for the nth time.
type crash struct {
	daemon string
	point  fp.Point
	nth    int
}

// String is the value of FAILPOINT.
func (c crash) String() string { return fmt.Sprintf("%s:%d", c.point, c.nth) }

// maxNth is the highest nth of a plan.
const maxNth = 8

// adapterPoints are the failpoints of daemons that deliver, except the cursor's: the web chat reads no platform.
var adapterPoints = slices.Concat([]fp.Point{fp.Received, fp.Sending, fp.Sent},
	around(fp.PutMessage, fp.ClaimOutbound, fp.PutDelivery, fp.SettleOutbound))

// platformPoints are further failpoints of the daemons that are connected to a platform.
var platformPoints = slices.Concat([]fp.Point{fp.Pressed}, previewPoints, around(fp.PutCursor))

// previewPoints are those of the messages that show a turn's progress.
var previewPoints = slices.Concat([]fp.Point{fp.Previewing, fp.Previewed, fp.Unshown},
	around(fp.BeginPreview, fp.KeepPreview, fp.EndPreview))

// pathPoints are all failpoints on the path of a message, by daemon.
var pathPoints = map[string][]fp.Point{
	"gated": slices.Concat([]fp.Point{fp.Read, fp.Resolved, fp.Requested, fp.Spawned, fp.Piping, fp.Framed, fp.Exited,
		fp.Recovering, fp.Checkpoint}, undoPoints,
		around(fp.PutMessage, fp.Decide, fp.PutTurn, fp.TakeTurn, fp.StartRun, fp.RecordProcess, fp.AnswerTurn,
			fp.EndTurn,
			fp.RequeueTurn, fp.EndRun, fp.Pin, fp.ResetSession, fp.CancelTurn, fp.TakeSystem, fp.ChangeContent,
			fp.TakeUp,
			fp.PutToolCall, fp.FireReminder, fp.PutBroadcast, fp.PutVote, fp.EndPoll, fp.PutProgress,
			fp.PutAsk, fp.AnswerAsk, fp.ExpireAsk)),
	"routd": slices.Concat([]fp.Point{fp.Answering, fp.Delivered},
		around(fp.PutEngagement, fp.PutCursor, fp.ConnectChat)),
	"onbod": slices.Concat([]fp.Point{fp.Connected}, around(fp.PutRequest, fp.NoteApproval, fp.DecideRequest)),
	"dashd": adapterPoints,
	"teled": slices.Concat(adapterPoints, platformPoints),
	"discd": slices.Concat(adapterPoints, platformPoints),
	"slakd": slices.Concat(adapterPoints, platformPoints),
}

// undoPoints are those of /undo.
var undoPoints = append(around(fp.PutUndo, fp.EndUndo), fp.UndoScanned, fp.UndoStaged, fp.UndoBegun, fp.UndoMoving,
	fp.UndoMoved, fp.Restored)

func around(verbs ...fp.Verb) (points []fp.Point) {
	for _, v := range verbs {
		points = append(points, v.Before(), v.After())
	}
	return points
}

// filePoints are those that a daemon reaches only if the database is a file.
var filePoints = []fp.Point{fp.Checkpoint}

// plan returns n crashes in rounds. A round has each failpoint once, in random order.
func plan(n int, server bool, random *rand.Rand) (crashes []crash) {
	for len(crashes) < n {
		var all []crash
		for _, daemon := range daemons {
			for _, point := range pathPoints[daemon] {
				if server && slices.Contains(filePoints, point) {
					continue
				}
				all = append(all, crash{daemon, point, nthOf(point, random)})
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		crashes = append(crashes, all...)
	}
	return crashes[:n]
}

// nthOf chooses how often a daemon reaches a point until it is killed.
func nthOf(point fp.Point, random *rand.Rand) int {
	n := 1 + random.IntN(maxNth)
	switch {
	case point == fp.Recovering:
		return 1 // gated reaches it once for each agent that it left at work
	case slices.Contains(previewPoints, point):
		return min(n, 2) // each takes seconds
	}
	return n
}

// pointCount is the number of crashes in a round.
func pointCount() (n int) {
	for _, points := range pathPoints {
		n += len(points)
	}
	return n
}
