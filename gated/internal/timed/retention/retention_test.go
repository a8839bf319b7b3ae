package retention

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/chatmove"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// harness is a job whose clock says day 100; rows of day 1 are old.
type harness struct {
	t   *testing.T
	job *Job
	st  *store.Store
	log *bytes.Buffer
	now time.Time
}

const day = 24 * time.Hour

func newHarness(t *testing.T, days int) *harness {
	t.Helper()
	h := &harness{t: t, st: storetest.Open(t), log: new(bytes.Buffer), now: time.UnixMilli(0).Add(100 * day)}
	h.job = New(Config{Days: days, Data: t.TempDir(), Now: func() time.Time { return h.now }}, h.st,
		slog.New(slog.NewTextHandler(h.log, nil)), prometheus.NewRegistry())
	h.job.pause = func(context.Context, time.Duration) {}
	return h
}

// message stores a decided row that arrived on a day.
func (h *harness) message(on int, files ...string) int64 {
	h.t.Helper()
	at := (time.Duration(on) * day).Milliseconds()
	m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Timestamp: at, ReceivedAt: at}
	for _, path := range files {
		m.Attachments = append(m.Attachments, msg.Attachment{Path: path})
	}
	h.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: "main"}, at)
	})
	return m.ID
}

func (h *harness) write(fn func(*store.Tx) error) {
	h.t.Helper()
	if err := h.st.Write(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

// file writes a file of the data folder that was last changed on a day.
func (h *harness) file(name string, on int) {
	h.t.Helper()
	path := filepath.Join(h.job.cfg.Data, name)
	at := time.UnixMilli(0).Add(time.Duration(on) * day)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) files() (names []string) {
	h.t.Helper()
	err := filepath.WalkDir(h.job.cfg.Data, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(h.job.cfg.Data, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return names
}

func (h *harness) purge() Counts {
	h.t.Helper()
	c := storetest.Must(h.job.Purge(h.t.Context()))(h.t)
	return c
}

func (h *harness) stored(ids ...int64) (stored []int64) {
	for _, id := range ids {
		m := storetest.Must(h.st.Message(h.t.Context(), id))(h.t)
		if m != nil {
			stored = append(stored, id)
		}
	}
	return stored
}

func TestPurge_OldAndYoungRows_DeletesOld(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 30)
	var ids []int64
	for i := range 1500 {
		ids = append(ids, h.message(1+i/1000*98))
	}
	if got := h.purge(); got != (Counts{Messages: 1000}) {
		t.Errorf("%s", got)
	}
	if got := h.stored(ids...); len(got) != 500 || got[0] != ids[1000] {
		t.Errorf("%d rows are left", len(got))
	}
	if !strings.Contains(h.log.String(), `msg="history purged" count="0 turns, 1000 messages, 0 runs, 0 broadcasts, 0 requests, 0 changes, 0 logs, 0 media files"`) {
		t.Errorf("log: %s", h.log)
	}
}

func TestPurge_WithoutRetention_KeepsEverything(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 0)
	id := h.message(1, "media/197001/x")
	h.file("logs/main/run-1.log", 1)
	h.file("media/197001/x", 1)
	if got := h.purge(); got != (Counts{}) || len(h.stored(id)) != 1 || len(h.files()) != 2 || h.log.Len() > 0 {
		t.Errorf("%s; files %v; log %s", got, h.files(), h.log)
	}
}

// TestPurge_OldTurn_DeletesItsRunAndLog also has a turn that ended lately, whose run
// and log stay.
func TestPurge_OldTurn_DeletesItsRunAndLog(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 30)
	at := day.Milliseconds()
	h.write(func(tx *store.Tx) error {
		for i, ended := range []int64{at, 99 * at} {
			m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, ReceivedAt: at}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:1", Topic: fmt.Sprint(i), TriggerMessageID: m.ID, CreatedAt: at}
			run := &msg.Run{Folder: "main", Topic: turn.Topic, ChatJID: "telegram:1", Runtime: "process", StartedAt: at}
			for _, step := range []func() error{
				func() error { _, err := rows.PutTurn(tx, turn, 0); return err },
				func() error { return rows.StartRun(tx, run, turn.ID) },
				func() error {
					return tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "main", TurnID: turn.ID}, at)
				},
				func() error {
					return gatedtest.AnswerTurn(tx, rows.Reply{RunID: run.ID, TurnID: turn.ID, Final: true}, ended)
				},
				func() error { return rows.EndRun(tx, run.ID, "", at) },
			} {
				if err := step(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, name := range []string{"logs/main/run-1.log", "logs/main/run-2.log", "logs/acme/eng/run-77.log", "logs/other.txt"} {
		h.file(name, 1)
	}
	h.file("logs/main/run-78.log", 99)
	if got := h.purge(); got != (Counts{Turns: 1, Messages: 1, Runs: 1, Logs: 2}) {
		t.Errorf("%s", got)
	}
	if got, want := h.files(), []string{"logs/main/run-2.log", "logs/main/run-78.log", "logs/other.txt"}; !slices.Equal(got, want) {
		t.Errorf("files %v", got)
	}
	if past, err := rows.PastSessions(t.Context(), h.st.Reader, "main", "0", 100, 10); err != nil || len(past) != 0 {
		t.Errorf("session log: %v, %v", past, err)
	}
}

func TestPurge_Receipts_GoWithTheirAge(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 30)
	h.write(func(tx *store.Tx) error {
		for i := range 2*pageRows + 3 {
			r := &egress.Receipt{At: (time.Duration(1+i/(2*pageRows)*98) * day).Milliseconds(), Folder: "main", Method: "GET", Host: "x", Port: 443, State: egress.Refused}
			if err := egressrows.PutReceipt(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	if got := h.purge(); got != (Counts{Receipts: 2 * pageRows}) {
		t.Errorf("%s", got)
	}
	if left := storetest.Must(egressrows.ListReceipts(t.Context(), h.st.Reader, egressrows.Filter{Limit: 10}))(t); len(left) != 3 {
		t.Errorf("%d are left", len(left))
	}
}

func TestPurge_Media_KeepsWhatARowNames(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 30)
	for _, name := range []string{"gone", "kept", "unknown", "left.part"} {
		h.file("media/197001/"+name, 1)
	}
	h.file("media/197004/young", 99)
	h.message(1, "media/197001/gone")
	h.message(99, "media/197001/kept", "media/197004/young")
	if got := h.purge(); got != (Counts{Messages: 1, Media: 3}) {
		t.Errorf("%s", got)
	}
	if got, want := h.files(), []string{"media/197001/kept", "media/197004/young"}; !slices.Equal(got, want) {
		t.Errorf("files %v", got)
	}
}

func TestPurge_ContextEnds_ReturnsItsError(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 30)
	for range 2 * pageRows {
		h.message(1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.job.pause = func(context.Context, time.Duration) { cancel() }
	if c, err := h.job.Purge(ctx); !errors.Is(err, context.Canceled) || c.Messages != pageRows {
		t.Errorf("%s, %v", c, err)
	}
	h.job.pause = func(context.Context, time.Duration) {}
	if c := h.purge(); c.Messages != pageRows {
		t.Errorf("the next purge: %s", c)
	}
}

func TestRun_MovedChat_IsFinished(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 0)
	h.write(func(tx *store.Tx) error {
		for range 1500 {
			if _, _, err := tx.PutMessage(&msg.Message{ChatJID: "telegram:-1", Direction: msg.In}); err != nil {
				return err
			}
		}
		return chatmove.Move(tx, "telegram:-1", "telegram:-2", 1)
	})
	h.job.finishMoves(t.Context())
	if _, moving, err := chatmove.Moves(t.Context(), h.st.Reader); err != nil || len(moving) > 0 {
		t.Errorf("moving %v, %v", moving, err)
	}
	if !strings.Contains(h.log.String(), "rows of moved chats follow") {
		t.Errorf("log: %s", h.log)
	}
}

// changes stores n rows of the audit of each day.
func (h *harness) changes(n int, days ...int) {
	h.t.Helper()
	h.write(func(tx *store.Tx) error {
		for _, on := range days {
			for range n {
				if err := tx.PutAudit("cli", "add route", "1", (time.Duration(on) * day).Milliseconds()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestPurge_Audit_KeepsAYear(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ days, deleted int }{
		"everything is kept":       {0, 0},
		"history of 30 days":       {30, 2 * pageRows},
		"history of a longer time": {500, pageRows},
	} {
		h := newHarness(t, tt.days)
		h.now = time.UnixMilli(0).Add(1000 * day)
		h.changes(pageRows, 400, 600, 700, 1000)
		if got := h.purge(); got != (Counts{Audit: tt.deleted}) {
			t.Errorf("%s: %s", name, got)
		}
		oldest, err := factrows.OldestAudit(t.Context(), h.st.Reader)
		if err != nil || oldest == nil || oldest.ID != int64(tt.deleted+1) {
			t.Errorf("%s: the oldest change is %+v, %v", name, oldest, err)
		}
		if got := h.purge(); got != (Counts{}) {
			t.Errorf("%s: then %s", name, got)
		}
	}
}

func TestPurge_AuditAboveItsBound_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	h := newHarness(t, 0)
	h.changes(factrows.MaxAuditRows+3*pageRows/2, 100)
	if got := h.purge(); got != (Counts{Audit: 3 * pageRows / 2}) || !strings.Contains(h.log.String(), "oldest changes deleted") {
		t.Errorf("%s; log %s", got, h.log)
	}
	if oldest, err := factrows.OldestAudit(t.Context(), h.st.Reader); err != nil || oldest.ID != 3*pageRows/2+1 {
		t.Errorf("the oldest change is %+v, %v", oldest, err)
	}
}
