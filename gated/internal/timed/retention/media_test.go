package retention

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// sized writes a file of the media folder that was last changed so long ago.
func (h *harness) sized(name string, size int64, ago time.Duration) {
	h.t.Helper()
	h.file("media/"+name, 0)
	path, at := filepath.Join(h.job.cfg.Data, "media", name), h.now.Add(-ago)
	if err := os.Truncate(path, size); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) trim(want ...string) {
	h.t.Helper()
	before := h.files()
	removed, err := h.job.TrimMedia(h.t.Context())
	if got := h.files(); err != nil || !slices.Equal(got, want) || removed != len(before)-len(got) {
		h.t.Errorf("%d removed, %v; left %q, want %q", removed, err, got, want)
	}
}

func TestTrimMedia_NearlyFull_RemovesTheOldest(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 0)
	h.job.cfg.MediaQuota = 1000
	h.trim() // there is no folder
	for i := range 9 {
		h.sized(fmt.Sprintf("197001/%d", i), 100, time.Hour*time.Duration(10-i))
	}
	all := h.files()
	h.trim(all...) // 90 %
	h.sized("197004/9", 1, time.Hour)
	h.trim(append(all[2:], "media/197004/9")...) // the two oldest
	if !strings.Contains(h.log.String(), "media folder trimmed") {
		t.Errorf("log: %s", h.log)
	}
}

// turnWithFile stores a turn in a state, named so as the file of its message.
func (h *harness) turnWithFile(state string) {
	h.t.Helper()
	at := h.now.UnixMilli()
	m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, ReceivedAt: at, Attachments: []msg.Attachment{{Path: "media/" + state}}}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:1", Topic: state, CreatedAt: at}
	run := &msg.Run{Folder: "main", Topic: state, ChatJID: "telegram:1", Runtime: "process", StartedAt: at}
	h.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		turn.TriggerMessageID = m.ID
		if _, err := rows.PutTurn(tx, turn, 0); err != nil {
			return err
		}
		if err := tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "main", TurnID: turn.ID}, at); err != nil || state == "queued" {
			return err
		}
		if err := rows.StartRun(tx, run, turn.ID); err != nil || state == "running" {
			return err
		}
		return gatedtest.AnswerTurn(tx, rows.Reply{RunID: run.ID, TurnID: turn.ID, Final: true}, at)
	})
}

func TestTrimMedia_FilesInUse_Stay(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 0)
	h.job.cfg.MediaQuota = 1000
	for i, name := range []string{"queued", "running", "unsent", "done", "young"} {
		h.sized(name, 400, time.Hour*time.Duration(9-i))
	}
	h.sized("young", 400, time.Minute)
	for _, state := range []string{"queued", "running", "done"} {
		h.turnWithFile(state)
	}
	h.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(&msg.Message{
			ChatJID: "telegram:1", Direction: msg.Out, Kind: msg.KindFile, OutState: msg.OutQueued, Attachments: []msg.Attachment{{Path: "media/unsent"}},
		})
		return err
	})
	h.trim("media/queued", "media/running", "media/unsent", "media/young")
	h.trim("media/queued", "media/running", "media/unsent", "media/young")
	if n := strings.Count(h.log.String(), "media folder is full"); n != 1 {
		t.Errorf("%d warnings: %s", n, h.log)
	}
}

// Files that a crash, or a call that failed, has left are removed whatever RETENTION_DAYS says.
func TestPurge_MediaThatNoRowNames_IsRemovedAfterADay(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 0)
	h.message(1, "media/197001/named")
	h.sized("197001/named", 1, 50*day)
	h.sized("197004/out-X-report.pdf", 1, 25*time.Hour)
	h.sized("197004/out-Y.part", 1, 25*time.Hour)
	h.sized("197004/new", 1, 23*time.Hour)
	if c := h.purge(); c != (Counts{Media: 2}) {
		t.Errorf("%s", c)
	}
	if got, want := h.files(), []string{"media/197001/named", "media/197004/new"}; !slices.Equal(got, want) {
		t.Errorf("left %q", got)
	}
}
