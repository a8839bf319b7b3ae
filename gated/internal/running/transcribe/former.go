package transcribe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/groupconfig"
)

// formerDelay is the wait between attempts to end the jobs of an earlier gated.
const formerDelay = 10 * time.Second

// parent is where the folders of jobs are.
func (w *Worker) parent() string { return filepath.Join(w.cfg.Data, "run", "transcribe") }

// folderName names a job's folder by its transcript and its runtime, so that the next gated can end it.
func folderName(transcript int64, rt groupconfig.Runtime) string {
	return fmt.Sprintf("job-%d-%s", transcript, rt)
}

// parseFolderName is the reverse of folderName.
func parseFolderName(name string) (transcript int64, rt groupconfig.Runtime, ok bool) {
	n, err := fmt.Sscanf(name, "job-%d-%s", &transcript, &rt)
	return transcript, rt, n == 2 && err == nil
}

// findFormer returns the folders of the jobs that an earlier gated has left: none of these is started until it has
// ended.
func (w *Worker) findFormer() (names []string) {
	entries, err := os.ReadDir(w.parent())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.log.Error("reading the folders of transcriptions failed", "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, entry := range entries {
		names = append(names, entry.Name())
		if id, _, ok := parseFolderName(entry.Name()); ok {
			w.former[id] = true
		}
	}
	return names
}

// endFormer ends the jobs of an earlier gated and removes their folders, until none is left or ctx ends.
func (w *Worker) endFormer(ctx context.Context, names []string) {
	for len(names) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool {
			err := w.endJob(ctx, name)
			if err != nil && ctx.Err() == nil {
				w.log.Warn("ending a transcription of an earlier gated failed; retrying", "folder", name, "err", err)
			}
			return err == nil
		})
		if len(names) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(formerDelay):
		}
	}
}

// endJob ends a job of an earlier gated.
func (w *Worker) endJob(ctx context.Context, name string) error {
	id, kind, ok := parseFolderName(name)
	if rt := w.cfg.Runtimes[kind]; ok && rt != nil {
		if _, err := rt.End(ctx, runtime.Orphan{RunID: runID(id)}); err != nil {
			return err
		}
	}
	if err := runtime.RemoveFolder(w.parent(), name); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.former, id)
	return nil
}
