package adapter

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/disk"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const uploadChat = "web:main"

// uploads are those of a shell on a store.
func uploads(t *testing.T, st *store.Store, data string) *Uploads {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	return NewUploads(New(&fake{}, Options{
		Platform: msg.PlatformWeb, Daemon: "dashd", Store: st, Log: log, Metrics: prometheus.NewRegistry(), Now: time.Now,
		Heartbeat: daemon.NewHeartbeat("dashd", "", log, func(context.Context, rows.Daemon) error { return nil }),
		Data:      data, Settings: Settings{MediaMax: 1000, MediaQuota: 1 << 20, MediaDaily: 1 << 20},
	}))
}

// mediaFiles lists the files in the media folder.
func mediaFiles(t *testing.T, data string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(data), mediaFolder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUploads_NoRoom_LeavesNothing(t *testing.T) {
	t.Parallel()
	st, data, ctx := storetest.Open(t), t.TempDir(), t.Context()
	u := uploads(t, st, data)
	u.space = func(string) (disk.Space, error) { return disk.Space{Free: disk.Full + 99, Size: 1 << 40}, nil }
	files, err := u.Begin(uploadChat)
	if err != nil {
		t.Fatal(err)
	}
	var refusal *FileError
	if err := files.Add(ctx, "a", "", 100, strings.NewReader("x")); !errors.As(err, &refusal) || !refusal.Later || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a disk that is nearly full: %v", err)
	}
	if err := files.Add(ctx, "a", "", 99, strings.NewReader("x")); err != nil {
		t.Errorf("a file for which there is room: %v", err)
	}
	full := &os.PathError{Op: "write", Err: syscall.ENOSPC}
	if err := noSpace(full); !errors.As(err, &refusal) || !refusal.Later {
		t.Errorf("a full disk: %v", err)
	}
	var cut *ReadError
	if err := files.Add(ctx, "b", "", 10, iotest.ErrReader(errors.New("gone"))); !errors.As(err, &cut) {
		t.Errorf("a client that has gone: %v", err)
	}
	if err := files.End(ctx, 0); err != nil || len(mediaFiles(t, data)) != 0 {
		t.Errorf("left: %q, %v", mediaFiles(t, data), err)
	}
	if n := u.limits.chats[uploadChat]; n != 0 {
		t.Errorf("%d bytes are still reserved", n)
	}
}

// gated may have removed the first file of a long upload, while all files took too much room.
func TestUploads_FileIsGone_OthersAreRemoved(t *testing.T) {
	t.Parallel()
	st, data, ctx := storetest.Open(t), t.TempDir(), t.Context()
	files, err := uploads(t, st, data).Begin(uploadChat)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := files.Add(ctx, "a", "", 1, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(data, mediaFiles(t, data)[0])); err != nil {
		t.Fatal(err)
	}
	if err := files.End(ctx, 0); err != nil || len(mediaFiles(t, data)) != 0 {
		t.Errorf("%v, files %q", err, mediaFiles(t, data))
	}
}

func TestUploadType_RecordingOfBrowser_IsAudio(t *testing.T) {
	const webm = "\x1aE\xdf\xa3 webm "
	for _, c := range []struct{ name, stated, head, want string }{
		{"a.webm", "video/webm", webm + "A_OPUS", "audio/webm"},
		{"a.webm", "video/webm", webm + "V_VP8 A_OPUS", "video/webm"},
		{"a.webm", "audio/webm;codecs=opus", webm, "audio/webm"},
	} {
		if got := uploadType(c.name, c.stated, []byte(c.head)); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
