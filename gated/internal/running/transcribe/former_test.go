package transcribe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// jobFolder makes the folder of a job as an earlier gated left it.
func (h *harness) jobFolder(name string) (path string) {
	h.t.Helper()
	path = filepath.Join(h.data, "run", "transcribe", name)
	if err := os.MkdirAll(filepath.Join(path, "closed", "inner"), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(path, "closed"), 0o500); err != nil { // as programs make them
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = os.Chmod(filepath.Join(path, "closed"), 0o700) }) // #nosec G302 -- else it stays
	return path
}

func (h *harness) noFolders() bool {
	left, err := os.ReadDir(filepath.Join(h.data, "run", "transcribe"))
	return err == nil && len(left) == 0
}

// A gated was killed: the leftovers of its jobs are ended, although no turn waits for them any more.
func TestWorker_LeftByKilledGated_IsEndedAndRemoved(t *testing.T) {
	t.Parallel()
	h := newHarness(t, `echo words`)
	h.jobFolder("job-7-process")
	h.jobFolder("job-8-unknown")
	h.jobFolder("other")
	left := exec.Command("sleep", "1000")
	left.Env = []string{"ARIZUKO_RUN=-7", "TMPDIR=" + filepath.Join(h.data, "tmp", "run--7")}
	left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	h.worker()
	var exit *exec.ExitError
	if err := left.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the process that was left ended: %v", err)
	}
	h.await("removal of the folders", h.noFolders)
	if got := h.transcript(h.voice("a.ogg")); got.Text != "words" {
		t.Errorf("got %+v", got)
	}
	h.await("removal of the folder", h.noFolders)
}

// stuck is a runtime that cannot end leftovers.
type stuck struct{ runtime.Runtime }

func (stuck) End(context.Context, runtime.Orphan) (bool, error) {
	return false, errors.New("the engine does not answer")
}

// As long as the job of an earlier gated may run, no second one is started for its file; the message does not wait
// longer for that.
func TestWorker_LeftJobCannotBeEnded_IsNotStartedTwice(t *testing.T) {
	t.Parallel()
	h := newHarness(t, `echo words`)
	h.runtimes[groupconfig.Docker] = stuck{}
	path := h.jobFolder("job-1-docker")
	first, second := h.voice("a.ogg"), h.voice("b.ogg")
	h.worker()
	if got := h.transcript(second); got.Text != "words" {
		t.Errorf("another file: %+v", got)
	}
	h.ahead.Store(int64(maxWait))
	if got := h.transcript(first); got.Error != msg.TranscriptLate {
		t.Errorf("got %+v", got)
	}
	h.awaitLog(`ending a transcription of an earlier gated failed; retrying" folder=job-1-docker err="the engine does not answer"`)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the folder, by which the next start finds the job: %v", err)
	}
}

func TestFolderName_NamesTranscriptAndRuntime(t *testing.T) {
	t.Parallel()
	for _, kind := range []groupconfig.Runtime{groupconfig.Process, groupconfig.Bwrap, groupconfig.Docker} {
		if id, rt, ok := parseFolderName(folderName(12, kind)); id != 12 || rt != kind || !ok {
			t.Errorf("%s: %d, %q, %v", kind, id, rt, ok)
		}
	}
	for _, name := range []string{"", "job-", "job-x-process", "job-1", fmt.Sprint("run-", 1)} {
		if _, _, ok := parseFolderName(name); ok {
			t.Errorf("%q is taken for a job's", name)
		}
	}
}
