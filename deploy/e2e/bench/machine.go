package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// describeMachine returns a line about the machine. It fails if the folder is in memory, where
// durability costs nothing.
func describeMachine(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	fs := fileSystem(string(mounts), path)
	if fs == "tmpfs" || fs == "ramfs" {
		return "", fmt.Errorf("%s is in memory (%s): choose a folder on a disk with -dir", dir, fs)
	}
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("`make bench` on %s: %s, %d cores, Linux %s, %s, %s, synchronous=FULL.",
		time.Now().UTC().Format(time.DateOnly),
		cpuModel(string(cpuinfo)), runtime.NumCPU(), strings.TrimSpace(string(kernel)), fs, runtime.Version()), nil
}

// cpuModel returns the name of the first processor in the text of /proc/cpuinfo.
func cpuModel(cpuinfo string) string {
	for entry := range strings.Lines(cpuinfo) {
		if key, value, ok := strings.Cut(entry, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// fileSystem returns the type of a path's file system from the text of /proc/self/mounts: that of the
// longest mount point above the path, or the last of several mounted there.
func fileSystem(mounts, path string) (fs string) {
	longest := ""
	for entry := range strings.Lines(mounts) {
		fields := strings.Fields(entry)
		if len(fields) < 3 {
			continue
		}
		point := fields[1]
		above := point == "/" || path == point || strings.HasPrefix(path, point+"/")
		if above && len(point) >= len(longest) {
			longest, fs = point, fields[2]
		}
	}
	return fs
}
