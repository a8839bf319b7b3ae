package need

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/disk"
)

// The file system of a database is found by the database, its folder, and a folder above that is there.
func TestFUSE_CannotCarryADatabase(t *testing.T) {
	folder := FUSE(t)
	for _, path := range []string{folder, filepath.Join(folder, "arizuko.db"), filepath.Join(folder, "data", "arizuko.db")} {
		var no *disk.CarryError
		if err := disk.CheckCarry(path); !errors.As(err, &no) || no.Kind != "FUSE" || no.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Nothing can be made on the file system, so a start that is not refused fails with its first folder.
func TestFUSE_DaemonStarts_RefusedUnlessOverridden(t *testing.T) {
	o := daemon.Options{Name: "gated", Base: config.Base{Data: filepath.Join(FUSE(t), "data")}, Addr: "127.0.0.1:0", Log: io.Discard}
	_, err := daemon.Start(t.Context(), o)
	var exit *daemon.ExitError
	if !errors.As(err, &exit) || exit.Code != daemon.ExitRefused || !errors.As(err, new(*disk.CarryError)) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, word := range []string{"FUSE", "a disk of this machine", disk.UnsafeVariable + "=1"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	var log bytes.Buffer
	o.Base.UnsafeFS, o.Log = true, &log
	if _, err := daemon.Start(t.Context(), o); err == nil || errors.As(err, new(*disk.CarryError)) || !strings.Contains(log.String(), "cannot carry") {
		t.Errorf("overridden: %v; the log:\n%s", err, log.String())
	}
	o.Base.UnsafeFS, o.Base.DB = false, "postgres://127.0.0.1/arizuko"
	if _, err := daemon.Start(t.Context(), o); err == nil || errors.As(err, new(*disk.CarryError)) {
		t.Errorf("with a server: %v", err)
	}
}
