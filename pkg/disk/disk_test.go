package disk

import (
	"errors"
	"io/fs"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	s, err := Of(t.TempDir())
	if err != nil || s.Free <= 0 || s.Size < s.Free || s.FreeFiles > s.Files {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Of("/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func TestSpace_Limits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		space                  Space
		low, full, filesAreLow bool
	}{
		"much":                       {Space{50 << 30, 100 << 30, 900, 1000}, false, false, false},
		"2 GiB of a small disk":      {Space{2 << 30, 10 << 30, 0, 0}, false, false, false},
		"below that":                 {Space{2<<30 - 1, 10 << 30, 0, 0}, true, false, false},
		"less than a tenth":          {Space{9 << 30, 100 << 30, 0, 0}, true, false, false},
		"full":                       {Space{256<<20 - 1, 100 << 30, 900, 1000}, true, true, false},
		"few files":                  {Space{50 << 30, 100 << 30, 19, 1000}, false, false, true},
		"a file system without them": {Space{50 << 30, 100 << 30, 0, 0}, false, false, false},
	} {
		if low, full, files := tt.space.IsLow(), tt.space.IsFull(), tt.space.FilesLow(); low != tt.low || full != tt.full || files != tt.filesAreLow {
			t.Errorf("%s: low %t, full %t, files low %t", name, low, full, files)
		}
	}
}

func TestBytes_EachUnit_IsWorded(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 10: "1 KiB", 1536: "1.5 KiB", 1 << 20: "1 MiB", 5 << 29: "2.5 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
