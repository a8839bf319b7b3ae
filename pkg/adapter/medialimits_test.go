package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

func TestFetch_BeyondTheDaysLimit_RefusesWhatIsTooMuch(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		const daily = "this chat has 1 MiB of files in a day, and 2 MiB is the limit (MEDIA_DAILY)"
		l := r.library()
		for _, name := range []string{"a", "b", "c"} {
			l.how[name] = func(_ context.Context, w io.Writer) error { _, err := w.Write(make([]byte, 1<<20)); return err }
		}
		r.fetches(l, func(o *Options) { o.MediaDaily = 2 << 20 })
		first := r.bringsFiles(msg.Attachment{Name: "a", Size: 1 << 20, Ref: "a"})
		r.look()
		second := r.bringsFiles(msg.Attachment{Name: "b", Size: 1<<20 + 1, Ref: "b"}, msg.Attachment{Name: "c", Ref: "c"}) // it may have 2 MiB
		r.look()
		r.expectFiles(l, first, msg.Attachment{Path: fmt.Sprintf("media/200001/%d-0-a", first), Name: "a", Size: 1 << 20})
		r.expectFiles(l, second, msg.Attachment{Name: "b", Size: 1<<20 + 1, Error: daily}, msg.Attachment{Name: "c", Error: daily})
		if got := l.fetched(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("fetched %q", got)
		}
		pass(24 * time.Hour)
		third := r.bringsFiles(msg.Attachment{Name: "b", Size: 1 << 20, Ref: "b"})
		r.look()
		r.expectFiles(l, third, msg.Attachment{Path: fmt.Sprintf("media/200001/%d-0-b", third), Name: "b", Size: 1 << 20})
	})
}

// Room is taken for the largest file where the platform does not say how large one is; it is given back at once.
func TestFetch_SizesUnknown_AllSmallFilesCome(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		l := r.library()
		var files []msg.Attachment
		for i := range 12 {
			files = append(files, msg.Attachment{Name: fmt.Sprint(i), Ref: fmt.Sprint(i)})
		}
		r.fetches(l, func(o *Options) { o.MediaDaily = 2 * mediaMax })
		id := r.bringsFiles(files...)
		r.look()
		pass(fetchTimeout)
		for _, a := range r.row(id).Attachments {
			if a.Path == "" {
				t.Errorf("%+v", a)
			}
		}
	})
}

// Downloads that run at once count before their rows do.
func TestFetch_ManyAtOnce_KeepWithinTheLimits(t *testing.T) {
	for name, limit := range map[string]func(*Options){
		"MEDIA_DAILY": func(o *Options) { o.MediaDaily = 2 << 20 },
		"MEDIA_QUOTA": func(o *Options) { o.MediaQuota = 2 << 20 },
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			l := r.library()
			var files []msg.Attachment
			for i := range 12 {
				ref := fmt.Sprint(i)
				l.how[ref] = func(_ context.Context, w io.Writer) error { _, err := w.Write(make([]byte, 1<<20)); return err }
				files = append(files, msg.Attachment{Name: ref, Size: 1 << 20, Ref: ref})
			}
			r.fetches(l, limit)
			ids := []int64{r.bringsFiles(files[:4]...), r.bringsFiles(files[4:8]...), r.bringsFiles(files[8:]...)}
			r.look()
			pass(fetchTimeout) // the quota may have room again
			whole := 0
			for _, id := range ids {
				for _, a := range r.row(id).Attachments {
					switch {
					case a.Path != "":
						whole++
					case !strings.Contains(a.Error, name):
						t.Errorf("%+v", a)
					}
				}
			}
			if got := len(l.onDisk(t)); whole != 2 || got != 2 {
				t.Errorf("%d files, %d on disk", whole, got)
			}
		})
	}
}

// gated removes old files meanwhile.
func TestFetch_QuotaHasRoomAgain_DownloadsAfterAll(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		l := r.library()
		old := filepath.Join(l.data, "media", "199912", "old")
		if err := errors.Join(os.MkdirAll(filepath.Dir(old), 0o700), os.WriteFile(old, make([]byte, 100), 0o600)); err != nil {
			t.Fatal(err)
		}
		r.fetches(l, func(o *Options) { o.MediaQuota = 100 })
		id := r.bringsFiles(msg.Attachment{Name: "a", Size: 1, Ref: "a"})
		r.look()
		if got := r.row(id); got.PendingFiles != 1 {
			t.Errorf("%+v", got.Attachments)
		}
		if err := os.Remove(old); err != nil {
			t.Fatal(err)
		}
		pass(fetchTimeout)
		r.look()
		r.expectFiles(l, id, msg.Attachment{Path: fmt.Sprintf("media/200001/%d-0-a", id), Name: "a", Size: 1})
	})
}
