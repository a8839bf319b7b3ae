package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func BenchmarkBegin_EmptyFolder(b *testing.B)    { benchmarkBegin(b, 0) }
func BenchmarkBegin_10000Unchanged(b *testing.B) { benchmarkBegin(b, 10_000) }

func benchmarkBegin(b *testing.B, files int) {
	data := b.TempDir()
	dir := filepath.Join(data, "groups", "acme+eng")
	for n := range max(files/100, 1) {
		sub := filepath.Join(dir, fmt.Sprintf("src/module%d", n))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		for i := range min(files, 100) {
			name := filepath.Join(sub, fmt.Sprintf("file%d.go", i))
			if err := os.WriteFile(name, fmt.Appendf(nil, "%d %d", n, i), 0o644); err != nil {
				b.Fatal(err)
			}
			old := time.Now().Add(-time.Hour)
			os.Chtimes(name, old, old)
		}
	}
	s := &Store{
		Root: filepath.Join(data, "undo"), Quota: 200 << 20, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Dir: func(string) (string, error) { return dir, nil },
	}
	turn := int64(1)
	var index, next []byte
	for index == nil || !bytes.Equal(index, next) { // until all is copied, and is old
		index = next
		if err := errors.Join(s.Begin("acme/eng", turn), s.End("acme/eng", turn)); err != nil {
			b.Fatal(err)
		}
		next, _ = os.ReadFile(filepath.Join(s.Root, "acme+eng/index"))
	}
	var used time.Duration
	for b.Loop() {
		turn++
		before := processorTime()
		if err := s.Begin("acme/eng", turn); err != nil {
			b.Fatal(err)
		}
		used += processorTime() - before
		b.StopTimer()
		s.End("acme/eng", turn)
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-us/op") // which other programs change less
}

func processorTime() time.Duration {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
