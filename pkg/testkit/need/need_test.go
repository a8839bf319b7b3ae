package need

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
)

// recorder is a test whose end is observed.
type recorder struct {
	testing.TB
	failed, skipped string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Skip(args ...any) { r.skipped = fmt.Sprint(args...); runtime.Goexit() }

func record(t *testing.T, test func(testing.TB)) *recorder {
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() { defer close(done); test(r) }()
	<-done
	return r
}

func TestVerify_OnlyWhereItIsSet_Runs(t *testing.T) {
	was := testing.Short()
	t.Cleanup(func() { _ = flag.Set("test.short", fmt.Sprint(was)) })
	if err := flag.Set("test.short", "false"); err != nil {
		t.Fatal(err)
	}
	for value, skipped := range map[string]bool{"": true, "1": false} {
		t.Setenv("VERIFY", value)
		if r := record(t, Verify); r.skipped != "" != skipped || r.failed != "" {
			t.Errorf("VERIFY=%s: skipped %q, failed %q", value, r.skipped, r.failed)
		}
	}
}

func TestProgram_ShortOrMissing_SkipsOrFails(t *testing.T) {
	was := testing.Short()
	t.Cleanup(func() { _ = flag.Set("test.short", fmt.Sprint(was)) })
	for _, tt := range []struct {
		short, program  string
		failed, skipped bool
	}{
		{"false", "go", false, false},
		{"false", "no-such-program", true, false},
		{"true", "go", false, true},
		{"true", "no-such-program", false, true},
	} {
		if err := flag.Set("test.short", tt.short); err != nil {
			t.Fatal(err)
		}
		r := record(t, func(t testing.TB) { Program(t, tt.program, "golang") })
		if r.failed != "" != tt.failed || r.skipped != "" != tt.skipped {
			t.Errorf("short=%s %s: failed %q, skipped %q", tt.short, tt.program, r.failed, r.skipped)
		}
	}
}
