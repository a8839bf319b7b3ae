package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	idleWindow = 20 * time.Second
	// minIdleCPU, in percent of a core, is 5 ticks in idleWindow. -against does not tell smaller values
	// apart, since some ticks are noise.
	minIdleCPU = 0.25
)

// idle measures daemons without work, after some messages.
func (b *bench) idle(ctx context.Context) (figures []figure, err error) {
	s, err := b.newArizuko(ctx, 1, 5)
	if err != nil {
		return nil, err
	}
	if _, err := askAlternately(ctx, b.pick(100, 10), s); err != nil {
		return nil, err
	}
	if err := wait(ctx, time.Second); err != nil {
		return nil, err
	}
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	window := idleWindow
	if b.quick {
		window = time.Second
	}
	if err := wait(ctx, window); err != nil {
		return nil, err
	}
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	for _, name := range arizukoDaemons {
		resident, err := residentMB(s.instance.Process(name).PID())
		if err != nil {
			return nil, err
		}
		used := 100 * (after[name] - before[name]).Seconds() / window.Seconds()
		figures = append(figures,
			figure{name: "idle CPU of " + name, unit: "% of a core", budget: 0.5, measured: used,
				compared: max(used, minIdleCPU)},
			figure{name: "idle memory of " + name, unit: "MB", budget: 30, measured: resident})
	}
	return figures, nil
}

// residentMB returns the resident memory of a process, in 10⁶ bytes.
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
