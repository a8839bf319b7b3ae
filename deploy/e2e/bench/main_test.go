package main

import (
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"arizuko/gated/gatedtest"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestChoose_Names_SelectParts(t *testing.T) {
	for _, tt := range []struct {
		only     string
		compared bool
		want     []string
	}{
		{only: "", want: []string{"latency", "sustained", "routing", "snapshots", "stored", "idle", "adapters", "progress", "agents", "backlog", "breakdown", "postgres"}},
		{only: "", compared: true, want: []string{"latency", "sustained", "idle", "adapters"}},
		{only: "idle,latency", want: []string{"idle", "latency"}},
		{only: "idle,speed", want: nil},
		{only: "stored", compared: true, want: nil},
	} {
		chosen, err := choose(tt.only, tt.compared)
		var names []string
		for _, s := range chosen {
			names = append(names, s.name)
		}
		if !slices.Equal(names, tt.want) || (err != nil) != (tt.want == nil) {
			t.Errorf("choose(%q, %t) = %q, %v", tt.only, tt.compared, names, err)
		}
	}
}

func TestReport_OverBudget_IsMarked(t *testing.T) {
	figures := []figure{
		{name: "fast", unit: "ms", measured: 1.234, budget: 1.5, floor: 0.5},
		{name: "slow", unit: "ms", measured: 12, budget: 10, note: "why"},
		{name: "enough", unit: "msg/s", measured: 3000, budget: 3000, more: true, floor: 6000},
		{name: "too few", measured: 2999.4, budget: 3000, more: true},
		{name: "near the floor", unit: "ms", measured: 2, floor: 1, ratio: 2},
		{name: "far from the floor", unit: "msg/s", measured: 39, floor: 100, ratio: 0.4, more: true},
		{name: "without its floor", unit: "ms", measured: 2, ratio: 1},
		{name: "no budget", unit: "MB", measured: 0.0512},
		{name: "docker", note: "not measured", measured: math.NaN()},
	}
	const head = "A machine.\n\n"
	const columns = "| figure | measured | budget | floor | ratio | result |\n|---|--:|--:|--:|--:|---|\n"
	want := head + columns +
		"| fast | 1.23 ms | ≤ 1.5 ms | 0.5 ms | 2.47 | ok |\n" +
		"| slow (why) | 12 ms | ≤ 10 ms |  |  | **over budget** |\n" +
		"| enough | 3000 msg/s | ≥ 3000 msg/s | 6000 msg/s | 0.50 | ok |\n" +
		"| too few | 2999 | ≥ 3000 |  |  | **over budget** |\n" +
		"| near the floor | 2 ms | ≤ 2 × floor | 1 ms | 2.00 | ok |\n" +
		"| far from the floor | 39 msg/s | ≥ 0.4 × floor | 100 msg/s | 0.39 | **over budget** |\n" +
		"| without its floor | 2 ms | ≤ 1 × floor |  |  |  |\n" +
		"| no budget | 0.0512 MB |  |  |  |  |\n" +
		"| docker (not measured) |  |  |  |  |  |\n"
	if diff := cmp.Diff(want, report("A machine.", figures, false)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = head + "Quick run: the figures mean nothing.\n\n" + columns + "| slow (why) | 12 ms | ≤ 10 ms |  |  |  |\n"
	if diff := cmp.Diff(want, report("A machine.", figures[1:2], true)); diff != "" {
		t.Errorf("quick, -want +got:\n%s", diff)
	}
}

func TestPercentile_UsesNearestRank(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i)*time.Millisecond)
	}
	for _, tt := range []struct {
		p    int
		all  []time.Duration
		want float64
	}{
		{50, hundred, 50}, {99, hundred, 99}, {100, hundred, 100}, {0, hundred, 1},
		{50, hundred[:1], 100}, {50, hundred[:3], 99}, {50, nil, 0},
	} {
		if got := percentile(tt.p, tt.all); got != tt.want {
			t.Errorf("percentile(%d) of %d = %v, want %v", tt.p, len(tt.all), got, tt.want)
		}
	}
	if hundred[0] != 100*time.Millisecond {
		t.Error("percentile reordered its argument")
	}
}

func TestParseBenchmarks_SlowestIsReturned(t *testing.T) {
	out := `goos: linux
BenchmarkFirst10k/exact-2         	 5000000	       240.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkFirst10k/none-2          	 2500000	       500.5 ns/op	       0 B/op	       0 allocs/op
BenchmarkFirst10k/glob-2          	 2500000	       480 ns/op	      16 B/op	       1 allocs/op
PASS
`
	got, err := parseBenchmarks(out)
	if want := (benchmark{"none-2", 500.5, 1}); got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "PASS\n", "BenchmarkX-2 10 fast ns/op\n"} {
		if got, err := parseBenchmarks(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestParseProcFiles_OfAMachine(t *testing.T) {
	mounts := "/dev/vda / ext4 rw 0 0\ntmpfs /var/tmp tmpfs rw 0 0\n/dev/vdb /var/tmp/disk xfs rw 0 0\nbroken\n"
	for path, want := range map[string]string{
		"/": "ext4", "/var": "ext4", "/var/tmpx": "ext4", "/var/tmp": "tmpfs", "/var/tmp/a": "tmpfs", "/var/tmp/disk/a": "xfs",
	} {
		if got := fileSystem(mounts, path); got != want {
			t.Errorf("fileSystem(%s) = %q, want %q", path, got, want)
		}
	}
	if got := cpuModel("processor\t: 0\nmodel name\t: Fast: 3 GHz\n"); got != "Fast: 3 GHz" {
		t.Errorf("cpuModel: %q", got)
	}
	if _, err := describeMachine("/dev/shm"); err == nil {
		t.Error("no error for a folder in memory")
	}
}

func TestParseAnswer_Notice_Error(t *testing.T) {
	at, n, err := parseAnswer("1234567890123456789 17")
	if at != 1234567890123456789 || n != 17 || err != nil {
		t.Errorf("%d %d %v", at, n, err)
	}
	if _, _, err := parseAnswer("Sorry, I could not answer this"); err == nil {
		t.Error("no error for a notice")
	}
}

func TestStoredHistory_LeavesNoOpenWork(t *testing.T) {
	st := storetest.Open(t)
	if err := (storedHistory{messages: 4400, chats: 7}).store(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if last, err := st.LastMessageID(t.Context()); err != nil || last != 4400 {
		t.Errorf("%d rows, %v", last, err)
	}
	if waiting, err := gatedtest.UndecidedChats(t.Context(), st.Reader); err != nil || len(waiting) > 0 {
		t.Errorf("undecided: %q, %v", waiting, err)
	}
	if open, err := storetest.OpenTurns(t.Context(), st.Reader); err != nil || len(open) > 0 {
		t.Errorf("%d open turns, %v", len(open), err)
	}
	turns, err := st.Turns(t.Context(), store.TurnList{State: msg.TurnDone, ChatJID: chatJID(6), Limit: 1000})
	if err != nil || len(turns) != 1100/7 {
		t.Fatalf("%d turns in the last chat, %v", len(turns), err)
	}
	in, err := factrows.TurnMessages(t.Context(), st.Reader, turns[0].ID)
	if err != nil || len(in) != messagesPerTurn || in[0].Disposition != msg.Routed {
		t.Errorf("rows of a turn: %+v, %v", in, err)
	}
}

func TestProcessClock_CountsTheTimeOfAProcess(t *testing.T) {
	var before, after unix.Timespec
	if err := unix.ClockGettime(processClock(os.Getpid()), &before); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 20*time.Millisecond; { // at work
	}
	if err := unix.ClockGettime(processClock(os.Getpid()), &after); err != nil {
		t.Fatal(err)
	}
	if used := time.Duration(after.Nano() - before.Nano()); used <= 0 || used > time.Minute {
		t.Errorf("used %s", used)
	}
}
