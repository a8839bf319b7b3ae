package daemon_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
	"arizuko/pkg/disk"
	"arizuko/pkg/testkit/need"
)

// Nothing can be made on the file system, so a start that is not refused fails with its first folder.
func TestStart_FileSystemCannotCarryTheDatabase_RefusedUnlessOverridden(t *testing.T) {
	o := options(filepath.Join(need.FUSE(t), "data"))
	_, err := daemon.Start(t.Context(), o)
	var exit *daemon.ExitError
	if !errors.As(err, &exit) || exit.Code != daemon.ExitRefused || !errors.As(err, new(*disk.CarryError)) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, word := range []string{"FUSE", "a disk of this machine", "ARIZUKO_UNSAFE_FS=1"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	var log bytes.Buffer
	o.Base.UnsafeFS, o.Log = true, &log
	if _, err := daemon.Start(t.Context(), o); err == nil || errors.As(err, new(*disk.CarryError)) {
		t.Errorf("overridden: %v", err)
	}
	if !strings.Contains(log.String(), "cannot carry") {
		t.Errorf("overridden, the log says nothing:\n%s", log.String())
	}
	o.Base.UnsafeFS, o.Base.DB = false, "postgres://127.0.0.1/arizuko"
	if _, err := daemon.Start(t.Context(), o); err == nil || errors.As(err, new(*disk.CarryError)) {
		t.Errorf("with a server: %v", err)
	}
}
