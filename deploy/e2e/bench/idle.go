package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// idle measures daemons that have worked a little and now have nothing to do.
func (b *bench) idle(ctx context.Context) (lines []line, err error) {
	s, err := b.arizuko(ctx, 1, 5)
	if err != nil {
		return nil, err
	}
	if _, err := askByTurns(ctx, b.pick(100, 10), s); err != nil {
		return nil, err
	}
	if err := wait(ctx, time.Second); err != nil {
		return nil, err
	}
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	window := time.Duration(b.pick(20, 1)) * time.Second
	if err := wait(ctx, window); err != nil {
		return nil, err
	}
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	for _, name := range s.daemons {
		resident, err := residentMB(s.Process(name).PID())
		if err != nil {
			return nil, err
		}
		lines = append(lines,
			line{what: "idle CPU of " + name, unit: "% of a core", budget: 0.5,
				measured: 100 * (after[name] - before[name]).Seconds() / window.Seconds()},
			line{what: "idle memory of " + name, unit: "MB", budget: 30, measured: resident})
	}
	return lines, nil
}

// cpu is what each daemon has used so far, without its agents.
func (s *system) cpu() (map[string]time.Duration, error) {
	used := map[string]time.Duration{}
	for _, name := range s.daemons {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process(name).PID()))
		if err != nil {
			return nil, err
		}
		if used[name], err = cpuTime(string(stat)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return used, nil
}

// clockTick is the unit of times in /proc on every Linux there is.
const clockTick = 10 * time.Millisecond

// cpuTime is user and system time in the text of /proc/<pid>/stat, see
// proc_pid_stat(5): fields 14 and 15, counted behind the name in parentheses,
// which is the second and may hold anything.
func cpuTime(stat string) (used time.Duration, err error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("/proc/<pid>/stat is too short")
	}
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		used += time.Duration(ticks) * clockTick
	}
	return used, nil
}

// residentMB is the memory a process occupies, in 10⁶ bytes.
func residentMB(pid int) (float64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return 0, err
	}
	return float64(resident) * float64(os.Getpagesize()) / 1e6, nil
}
